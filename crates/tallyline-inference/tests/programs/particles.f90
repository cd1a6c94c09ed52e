! Arrays that are allocated: the code reads the address of their elements from a descriptor.

module parts
  type particle
    real(8) :: place(3), speed(3)
    real(8) :: mass
    integer :: kind
  end type
  type cell
    integer :: number
    type(particle), allocatable :: inside(:)
  end type
end module

subroutine step(one, time)
  use parts
  type(cell), intent(inout) :: one
  real(8), intent(in) :: time
  integer :: i
  do i = 1, one%number ! // cell.number
    one%inside(i)%place(1) = one%inside(i)%place(1) + time ! // particle.place[] cell.inside
    if (one%inside(i)%kind == 2) then ! // particle.kind cell.inside
      one%inside(i)%mass = one%inside(i)%mass * 2 ! // particle.mass cell.inside
    end if
  end do
end subroutine

function heaviest(many) result(most)
  use parts
  type(particle), intent(in) :: many(:)
  real(8) :: most
  integer :: i
  most = 0
  do i = 1, size(many)
    if (many(i)%mass > most) most = many(i)%speed(2) ! // particle.mass particle.speed[]
  end do
end function

program main
  use parts
  interface
    function heaviest(many) result(most)
      use parts
      type(particle), intent(in) :: many(:)
      real(8) :: most
    end function
  end interface
  type(cell) :: one
  one%number = 10
  allocate(one%inside(one%number))
  one%inside%mass = 1
  call step(one, 0.5d0)
  print *, heaviest(one%inside(1:10:2))
end program
