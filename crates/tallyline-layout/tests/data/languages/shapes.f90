! Types of Fortran, and what the compiler says about them: a line `type bytes`, or
! `type.member offset bytes`.
module shapes
  implicit none
  type :: point
    real(8) :: x, y
  end type
  type :: box
    character(len=3) :: tag
    integer(2) :: m(3,4)
    integer(4) :: lo(-2:5)
    type(point) :: corner(2)
    logical :: flag
    integer(8) :: none(0)
    integer(1) :: last
  end type
  type :: table
    integer :: n
    real(8), allocatable :: v(:)
    integer, pointer :: p(:,:)
    integer(1) :: between
    character(len=:), allocatable :: s
    type(box), pointer :: link
    integer, allocatable :: cube(:,:,:)
    procedure(), pointer, nopass :: f
    complex(4) :: z
    integer(1) :: last
  end type
  type, extends(point) :: point3
    real(4) :: z
  end type
contains
  subroutine say(name, place, base, bytes)
    character(*), intent(in) :: name
    integer(8), intent(in) :: place, base
    integer, intent(in) :: bytes
    print '(A,1X,I0,1X,I0)', name, place - base, bytes
  end subroutine
end module

program main
  use shapes
  implicit none
  type :: in_main
    integer(1) :: a
    integer(2) :: g(0:2,2,2)
  end type
  type(in_main), target :: im
  type(box), target :: b
  type(table), target :: t
  type(point3), target :: q
  print '(A,1X,I0)', 'point', storage_size(b%corner)/8
  print '(A,1X,I0)', 'box', storage_size(b)/8
  print '(A,1X,I0)', 'table', storage_size(t)/8
  print '(A,1X,I0)', 'point3', storage_size(q)/8
  print '(A,1X,I0)', 'in_main', storage_size(im)/8
  call say('in_main.g', loc(im%g), loc(im), size(im%g) * storage_size(im%g)/8)
  call say('box.tag', loc(b%tag), loc(b), 3)
  call say('box.m', loc(b%m), loc(b), size(b%m) * storage_size(b%m)/8)
  call say('box.lo', loc(b%lo), loc(b), size(b%lo) * storage_size(b%lo)/8)
  call say('box.corner', loc(b%corner), loc(b), size(b%corner) * storage_size(b%corner)/8)
  call say('box.flag', loc(b%flag), loc(b), storage_size(b%flag)/8)
  call say('box.last', loc(b%last), loc(b), storage_size(b%last)/8)
  call say('table.between', loc(t%between), loc(t), 1)
  call say('table.z', loc(t%z), loc(t), storage_size(t%z)/8)
  call say('table.last', loc(t%last), loc(t), 1)
  call say('point3.z', loc(q%z), loc(q), storage_size(q%z)/8)
  t%n = 0
  t%f => null()
end program
