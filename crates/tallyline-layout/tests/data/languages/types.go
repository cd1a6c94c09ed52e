package main

import (
	"fmt"
	"io"
	"sync"
)

type Inner struct {
	A byte
	B int64
}
type Iface interface{ Foo(int) string }
type Color uint8
type Gen[T any] struct {
	v T
	n uint8
}
type Arr [3]Inner
type All struct {
	b    bool
	s    string
	sl   []uint16
	m    map[string]Inner
	c    chan int
	i    Iface
	e    interface{}
	f    func(int) error
	p    *Inner
	a    [4]uint8
	Inner
	emb  struct{ x, y int32 }
	cx   complex128
	r    rune
	col  Color
	g    Gen[uint16]
	w    io.Writer
	mu   sync.Mutex
	arr  Arr
	u    uintptr
	self *All
	z    struct{}
}

func main() {
	var a All
	a.m = map[string]Inner{"a": {1, 2}}
	fmt.Println(a)
	var g Gen[Inner]
	fmt.Println(g)
}
