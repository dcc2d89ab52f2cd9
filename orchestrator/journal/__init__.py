"""What happened in a campaign: events in a file, and the state that follows from them.

- `events` are what can happen, each a line of the journal (`codec`) that its only `writer` appends; `file`
  reads them, `replay` applies each to the `state`. To add an event: a class in `events`, and a function in
  `replay` that is registered for it. Old journals must stay readable, so new fields of events have defaults.
- Parts of the replay: `attempt_end`, `setbacks` and `nodes` for failures, `allocations` of shared jobs,
  `discards`, `references`, and `executables`.
- What is read from the state: `measurements` for models and strategies, `differences` between campaigns.
- `snapshot` keeps a state as JSON, so that looking at a campaign needs no replay. How events and states are
  JSON follows from the types of their fields: `forms`.
"""
