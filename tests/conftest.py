"""Settings of all tests."""

from hypothesis import settings

from tests.slurm.fixtures import slurm_cluster as slurm_cluster
from tests.slurm.fixtures import slurm_cluster_without_accounting as slurm_cluster_without_accounting

# No test is timed: the machines that run them are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
