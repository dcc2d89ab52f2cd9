"""Settings of all tests."""

from hypothesis import settings

# No test is timed: the machines that run them are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
