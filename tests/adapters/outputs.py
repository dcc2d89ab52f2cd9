"""What the applications print, shortened to the lines that matter, with invented numbers."""

from __future__ import annotations

LULESH = """\
Running problem size 10^3 per domain until completion
Num processors: 8
Total number of elements: 8000

Run completed:
   Problem size        =  10
   MPI tasks           =  8
   Iteration count     =  50
   Final Origin Energy =  6.483837e+05

Elapsed time         =       0.25 (s)
Grind time (us/z/c)  =  5.0651014 (per dom)  (0.25325507 overall)
FOM                  =  1579.4353 (z/s)
"""

KRIPKE_1_1 = """\
------------------------ KRIPKE VERSION 1.1 --------------------------
iter 0: particle count=4.295251e+07, change=1.000000e+00
Timers:
  Timer                    Count       Seconds
  LTimes                       5       0.04940
  Solve                        1       0.41260
  Sweep                        5       0.10477
  Sweep_Kernel                40       0.03584

TIMER_NAMES:LTimes,Solve,Sweep,Sweep_Kernel
TIMER_DATA:0.049396,0.412603,0.104768,0.035835
"""

KRIPKE = """\
                 |_|        Version 1.2.5-dev
Timers
======

  Timer                    Count       Seconds
  ----------------  ------------  ------------
  Generate                     1       0.00143

TIMER_NAMES:Generate,Population,Solve,SweepSolver,SweepSubdomain
TIMER_DATA:0.001427,0.006143,0.436591,0.062015,0.047333

Figures of Merit
================

  Throughput:         2.026464e+07 [unknowns/(second/iteration)]
END
"""

MINIFE = """\
      creating/filling mesh...0.000245094s, total time: 0.000245094
generating matrix structure...0.00266314s, total time: 0.00290823
Starting CG solver ...
Initial Residual = 21.0191
Iteration = 60   Residual = 1.14623e-14
"""

MINIFE_REPORT = """\
Mini-Application Name: miniFE
Matrix structure generation:
  Mat-struc-gen Time: 0.0025
FE assembly:
  FE assembly Time: 0.02
CG solve:
  Iterations: 65
  WAXPY Time: 0.0004
  WAXPY Flops: 4.728e+06
  DOT Time: 0.0012
  MATVEC Time: 0.0176
  Total:
    Total CG Time: 0.0195
    Total CG Flops: 3.67695e+07
  Time per iteration: 0.0003
Total Program Time: 0.05
"""

QUICKSILVER = """\
Quicksilver Version     : 2023-Aug-18-15:12:10
cycle           start       source           rr        split
       0            0          256            0         2304

Timer                       Cumulative   Cumulative   Cumulative   Cumulative   Cumulative   Cumulative
Name                            number    microSecs    microSecs    microSecs    microSecs   Efficiency
                              of calls          min          avg          max       stddev       Rating
main                                 1    9.216e+03    9.239e+03    9.263e+03    2.351e+01        99.74
cycleTracking                        3    8.907e+03    8.912e+03    8.917e+03    5.000e+00        99.94
cycleTracking_Kernel               331    8.059e+03    8.210e+03    8.361e+03    1.510e+02        98.19
Figure Of Merit              5.166e+06 [Num Segments / Cycle Tracking Time]
"""

AMG = """\
Running with these driver parameters:
  solver ID    = 1
=============================================
Generate Matrix:
=============================================
Spatial Operator:
  wall clock time = 0.003756 seconds
  wall MFLOPS     = 0.000000
  cpu clock time  = 0.003757 seconds
=============================================
Problem 1: AMG Setup Time:
=============================================
PCG Setup:
  wall clock time = 0.012532 seconds
=============================================
Problem 1: AMG-PCG Solve Time:
=============================================
PCG Solve:
  wall clock time = 0.026879 seconds

Iterations = 18
Final Relative Residual Norm = 5.506673e-09

Figure of Merit (FOM_1): 2.246536e+08
"""

AMG_PROBLEM_2 = """\
=============================================
Problem 2: Cumulative AMG-GMRES Solve Time:
=============================================
GMRES Solve:
  wall clock time = 0.059057 seconds

No. of Time Steps = 6
Cum. No. of Iterations = 187

Figure of Merit (FOM_2): 1.606760e+08
"""

RELEARN = """\
[2026-01-01 00:00:00.000] [\x1b[32minfo\x1b[m] [INFO:Rank 0] Neurons created
[2026-01-01 00:00:00.000] [\x1b[32minfo\x1b[m] \n\
======== TIMERS GLOBAL OVER ALL RANKS ========
                                       (          min |          avg |          max) sec.
TIMERS: main()
  Initialization                       :   0.31409770 |   0.31411182 |   0.31412595
    Load Synapses                      :   0.00000018 |   0.00000033 |   0.00000047
  Simulation loop                      :   0.07929263 |   0.08007506 |   0.08085750
    Connectivity update                :   0.00063709 |   0.00064086 |   0.00064464
      Exchange deletions (w/ all to all) : 0.00002183 |   0.00002301 |   0.00002419
    Print IO                           :   0.00023691 |   0.00026587 |   0.00029482


[2026-01-01 00:00:00.000] [\x1b[32minfo\x1b[m] [INFO:Rank 0] Total up to now : 0	0	0
END: Thu Jan  1 00:00:00 2026
"""

LAMMPS = """\
LAMMPS (22 Jul 2025 - Update 4)
   Step          Temp          E_pair         E_mol          TotEng         Press
         0   3             -6.7733681      0             -4.6139081     -5.0199732
Loop time of 0.167967 on 2 procs for 100 steps with 4000 atoms

Performance: 257193.566 tau/day, 595.355 timesteps/s, 2.381 Matom-step/s
MPI task timing breakdown:
Section |  min time  |  avg time  |  max time  |%varavg| %total
---------------------------------------------------------------
Pair    | 0.062238   | 0.071555   | 0.080871   |   3.5 | 42.60
Comm    | 0.065173   | 0.07849    | 0.091806   |   4.8 | 46.73
Output  | 6.8573e-05 | 0.00015431 | 0.00024004 |   0.0 |  0.09
Other   |            | 0.0007596  |            |       |  0.45

Nlocal:           2000 ave        2019 max        1981 min
Total wall time: 0:00:00
"""

HPL = """\
HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR10C2R4        1000    40     1     2               0.03             2.1584e+01
HPL_pdgesv() start time Fri Nov 20 11:30:04 2026
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.33342785e-03 ...... PASSED
================================================================================
End of Tests.
"""

SMG2000 = """\
Running with these driver parameters:
  (nx, ny, nz)    = (40, 40, 40)
  (Px, Py, Pz)    = (2, 1, 1)
  solver ID       = 0
=============================================
Struct Interface:
=============================================
Struct Interface:
  wall clock time = 0.004126 seconds
  cpu clock time  = 0.004126 seconds
=============================================
Setup phase times:
=============================================
SMG Setup:
  wall clock time = 0.053302 seconds
  cpu clock time  = 0.053302 seconds
SMG:
  wall clock time = 0.053300 seconds
  cpu clock time  = 0.053300 seconds
SMGRelax:
  wall clock time = 0.021103 seconds
  cpu clock time  = 0.021103 seconds
=============================================
Solve phase times:
=============================================
SMG Solve:
  wall clock time = 0.256739 seconds
  cpu clock time  = 0.257590 seconds
SMG:
  wall clock time = 0.256737 seconds
  cpu clock time  = 0.257588 seconds
SMGRelax:
  wall clock time = 0.244915 seconds
  cpu clock time  = 0.245745 seconds
CyclicReduction:
  wall clock time = 0.141412 seconds
  cpu clock time  = 0.141778 seconds

Iterations = 6
Final Relative Residual Norm = 1.097421e-07

"""

EXAFMM = """\
--- FMM Parameter --------------
ncrit                : 64
distribution         : cube
P                    : 6
--- FMM Profiling --------------
Initialize bodies    : 0.0005050
Partition            : 0.0011980
Precalculation       : 0.0000010
Build tree           : 0.0010430
P2M & M2M            : 0.0020660
Local essential tree : 0.0418810
M2L & P2P            : 0.0856420
L2L & L2P            : 0.0029080
Total FMM            : 0.1349450
Direct N-Body        : 0.0009120
--- FMM vs. direct -------------
Rel. L2 Error (p)    : 3.4e-04
Rel. L2 Error (F)    : 8.4e-04
"""

BEATNIK = """\
RocketRig
============Command line arguments============
Thread Setting                : serial
Mesh Dimension                : 64, 64
Solver Order                  : 0
HeFFTe configuration          : 6
Write Frequency               : 0
==============================================
Step 0 / 3 at time = 0.000000
Step 1 / 3 at time = 0.003612
Step 2 / 3 at time = 0.007224
measured_time: 1.58555
measured_time: 1.57598
"""

FIESTA = """\
[     0.00056] Message: Initializing MPI Setup
        Number of Processes:    2
        MPI Discretization:     (2,1,1)
[     0.09409] Message: Grid generated in: 1.463e-06
[     0.11865] Message: Beginning Main Time Loop
[     0.60550] Message: Simulation complete!
[     0.60555] Message: Reporting Timers:
        Total Execution Time                   5.135e-01

        Total Startup Time                     2.655e-02
        Initial Condition Generation           2.385e-02
        Grid Generation                        1.463e-06
        Initial Condition Write Time           0.000e+00

        Total Simulation Time                  4.868e-01
        Flux Calculation                       2.511e-01
        Halo Exchanges                         2.294e-01
        Boundary Conditions                    1.526e-03
"""

MPI_KERNEL = """\
2 ranks, 50 executions
gemm: min 1.045380320e-03 mean 1.124819340e-03 max 1.204258360e-03 s over ranks
"""

# Complete outputs of one run, by the name of the application.
COMPLETE: dict[str, dict[str, str]] = {
    "amg": {"stdout": AMG, "stderr": ""},
    "beatnik": {"stdout": BEATNIK, "stderr": ""},
    "exafmm": {"stdout": EXAFMM, "stderr": ""},
    "fiesta": {"stdout": FIESTA, "stderr": ""},
    "hpl": {"stdout": HPL, "stderr": ""},
    "kripke": {"stdout": KRIPKE, "stderr": ""},
    "kripke-1.1": {"stdout": KRIPKE_1_1, "stderr": ""},
    "lammps": {"stdout": LAMMPS, "stderr": ""},
    "lulesh": {"stdout": LULESH, "stderr": ""},
    "minife": {"stdout": MINIFE, "stderr": "", "miniFE.20x20x20.P2.2026.yaml": MINIFE_REPORT},
    "mpi-kernel": {"stdout": MPI_KERNEL, "stderr": ""},
    "quicksilver": {"stdout": QUICKSILVER, "stderr": ""},
    "relearn": {"stdout": RELEARN, "stderr": ""},
    "smg2000": {"stdout": SMG2000, "stderr": ""},
}

# A possible point of each application.
SETTINGS: dict[str, dict[str, int | float | str]] = {
    "amg": {"p": 8, "s": 10},
    "beatnik": {"p": 4, "n": 256},
    "exafmm": {"p": 4, "t": 2, "n": 5000, "order": 6},
    "fastest": {"p": 32, "s": 65536, "cases": "/work/cases"},
    "fiesta": {"p": 4, "n": 60},
    "hpl": {"p": 6, "n": 1000},
    "kripke": {"p": 8, "t": 2, "s": 6},
    "kripke-1.1": {"p": 4, "n": 12, "groups": 16, "nest": "GZD"},
    "lammps": {"p": 2, "x": 20, "steps": 50},
    "lulesh": {"p": 27, "s": 12},
    "minife": {"p": 4, "n": 20},
    "mpi-kernel": {"p": 2, "kernel": "geqrf", "m": 512, "n": 128},
    "quicksilver": {"p": 4, "s": 3},
    "relearn": {"p": 4, "n": 200, "theta": 0.2},
    "smg2000": {"p": 4, "px": 1, "s": 30, "cx": 0.1, "cz": 10.0},
}
