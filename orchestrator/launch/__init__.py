"""How a run is started: an application's template in a frame becomes a launch script.

`script` fills templates, which `template` reads and checks; `mpi` chooses the command that starts parallel
programs, and `profilers` has the variables that profilers need. `generic` is the application without an
adapter, with numbers as programs print them (`printed`). `failures` says from the output who failed.
"""
