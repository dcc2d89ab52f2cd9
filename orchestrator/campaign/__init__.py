"""One campaign file -> one frozen `definition.Campaign`, with everything wrong in it said at once.

- `loader` does that: `yaml` with the place of every key, then the `site` file, then `schema`: the only place
  of keys and defaults. `fields` has the types of values, `messages` says what is wrong with them, and
  `validation` finds what types cannot express.
- Completed from elsewhere: `values` of parameters, up to the size of a `partition`; `derivation` of values
  from constraints; `paths` of programs and files; what `effort` campaigns need; what is `learned` from other
  campaigns.
- `definition` is the result. `changes` says what of it may differ when a campaign continues, and `draft`
  writes the first version of a file, for the program and parameters of a `command` line.
"""
