#!/bin/bash

# Parameters
#SBATCH --account=p0020
#SBATCH --array=0-1000%1001
#SBATCH --chdir=/opt/orchestrator
#SBATCH --constraint='avx512&!gpu'
#SBATCH --contiguous
#SBATCH --cpus-per-task=6
#SBATCH --error='/project/it'"'"'s mine/batches/lulesh-0123456789abcdef/%A_%a_0_log.err'
#SBATCH --exclusive
#SBATCH --export=ALL
#SBATCH --job-name=lulesh-0123456789abcdef
#SBATCH --mail-type=END
#SBATCH --mem-per-cpu=3800M
#SBATCH --no-requeue
#SBATCH --nodes=3
#SBATCH --ntasks=10
#SBATCH --ntasks-per-node=4
#SBATCH --open-mode=append
#SBATCH --output='/project/it'"'"'s mine/batches/lulesh-0123456789abcdef/%A_%a_0_log.out'
#SBATCH --partition=large,huge
#SBATCH --qos=long
#SBATCH --reservation='perf week'
#SBATCH --signal=USR2@0
#SBATCH --switches=1
#SBATCH --time=61

# setup
ln -sf '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'/$SLURM_ARRAY_TASK_ID.pkl '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'/${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}_submitted.pkl
export ORCHESTRATOR_JOB_ENDS=$(($(cut -d. -f1 /proc/uptime) + 3660))

# command
export SUBMITIT_EXECUTOR=slurm
exec '/opt/my python/bin/python3' -u -m submitit.core._submit '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'
