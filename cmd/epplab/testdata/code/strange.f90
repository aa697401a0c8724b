program lattice
  use mpi
  integer, parameter :: n = 256, nsteps = 10000
  real(8), allocatable :: u(:,:,:), v(:,:,:)
  call mpi_init(ierr)
  do it = 1, nsteps
    call exchange_halo(v, nranks)
  end do
end program lattice
