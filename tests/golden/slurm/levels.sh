#!/bin/bash

# Parameters
#SBATCH --array=0-0%1
#SBATCH --chdir=/opt
#SBATCH --cpus-per-task=2
#SBATCH --error='/project/it'"'"'s mine/batches/lulesh-0123456789abcdef/%A_%a_0_log.err'
#SBATCH --export=ALL
#SBATCH --gpus-per-node=2
#SBATCH --job-name=levels-0123456789abcdef
#SBATCH --no-requeue
#SBATCH --nodelist=n1,n3
#SBATCH --nodes=4
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=2
#SBATCH --open-mode=append
#SBATCH --output='/project/it'"'"'s mine/batches/lulesh-0123456789abcdef/%A_%a_0_log.out'
#SBATCH --partition=debug
#SBATCH --signal=USR2@0
#SBATCH --time=3

# setup
ln -sf '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'/$SLURM_ARRAY_TASK_ID.pkl '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'/${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}_submitted.pkl
export ORCHESTRATOR_JOB_ENDS=$(($(cut -d. -f1 /proc/uptime) + 180))

# command
export SUBMITIT_EXECUTOR=slurm
exec /bin/python3 -u -m submitit.core._submit '/project/it'"'"'s mine/batches/lulesh-0123456789abcdef'
