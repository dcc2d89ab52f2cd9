#!/bin/bash
# Start a program on this machine. Runs in the attempt's own directory.

# What an enclosing MPI program or job step left behind makes MPI_Init believe that it belongs to that one.
unset PMI_FD PMI_RANK PMI_SIZE PMI_PORT PMI_ID PMIX_RANK PMIX_NAMESPACE PMIX_ID PMIX_SERVER_URI2 PMIX_SERVER_URI21
unset ${!OMPI_COMM_WORLD_@} ${!PMIX_SERVER_@} ${!MPI_LOCAL@}



export OMP_NUM_THREADS=1

cat > in.melt << 'END'
# A face-centred cubic crystal of Lennard-Jones particles melts; x * y * z unit cells of four atoms.
units         lj
lattice       fcc 0.8442
region        domain block 0 ${x} 0 ${y} 0 ${z}
create_box    1 domain
create_atoms  1 box
mass          1 1.0
velocity      all create 3.0 20250101
pair_style    lj/cut 2.5
pair_coeff    1 1 1.0 1.0
neighbor      0.3 bin
neigh_modify  every 20 delay 0 check no
fix           motion all nve
run           ${steps}
END
openmp=()
if [ 1 -gt 1 ]; then openmp=(-sf omp -pk omp 1); fi

exec < /dev/null
exec mpiexec -n 2 '/opt/my apps/program.x' -in in.melt -log none \
    -var x 20 -var y 10 -var z 10 -var steps 50 "${openmp[@]}"
