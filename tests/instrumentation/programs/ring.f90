! A Fortran program for the tests of timed MPI operations: exchanges in a ring, and a sum.
program ring
  use mpi
  implicit none
  integer :: rank, size, error, step
  double precision :: total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  total = rank
  do step = 1, 3
    call exchange()
  end do
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  if (nint(total) /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPI_Finalize(error)
contains
  subroutine exchange()
    double precision :: data(100), received(100)
    integer :: requests(2), target, source
    data = rank
    target = mod(rank + 1, size)
    source = mod(rank + size - 1, size)
    call MPI_Irecv(received, 100, MPI_DOUBLE_PRECISION, source, 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(data, 100, MPI_DOUBLE_PRECISION, target, 0, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    if (nint(received(1)) /= source) call MPI_Abort(MPI_COMM_WORLD, 2, error)
  end subroutine
end program
