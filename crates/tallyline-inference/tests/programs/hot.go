// Where the time of a Go program without maps goes: each line says which fields it touches. With an
// argument it runs that many rounds.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type Counted struct {
	Uses int
}

type Order struct {
	Counted
	ID     int
	Flags  int32
	Price  float64
	Next   *Order
	Recent [8]int32
}

type Node struct {
	Left, Right *Node
	Key         int
	Order       *Order
}

type Tree struct {
	Root    *Node
	Lookups int
}

type Side struct {
	Price, Size int32
}

type Book struct {
	Bids, Asks []Side
	Sequence   uint64
}

type Table struct {
	buckets [][]Order
	hits    int
}

//go:noinline
func walk(o *Order) float64 {
	sum := 0.0
	for o != nil {
		if o.Flags&1 == 1 { // Order.Flags
			sum += o.Price // Order.Price
		}
		o.Uses++   // Order.Counted.Uses
		o = o.Next // Order.Next
	}
	return sum
}

//go:noinline
func (t *Tree) find(key int) *Order {
	t.Lookups++ // Tree.Lookups
	n := t.Root // Tree.Root
	for n != nil {
		if n.Key == key { // Node.Key
			return n.Order // Node.Order
		}
		if key < n.Key { // Node.Key
			n = n.Left // Node.Left
		} else {
			n = n.Right // Node.Right
		}
	}
	return nil
}

//go:noinline
func mark(orders []Order, round int) int {
	sum := 0
	for i := range orders {
		orders[i].Recent[round&7]++ // Order.Recent[]
		sum += orders[i].ID         // Order.ID
	}
	return sum
}

//go:noinline
func match(b *Book) int {
	sum := 0
	for i := range b.Bids { // Book.Bids.len Book.Bids.array
		if b.Bids[i].Price > b.Asks[i].Price { // Side.Price Book.Asks.array Book.Asks.len Book.Bids.array Book.Bids.len
			sum += int(b.Asks[i].Size) // Side.Size Book.Asks.array Book.Asks.len
			b.Sequence++               // Book.Sequence
		}
	}
	return sum
}

//go:noinline
func (t *Table) lookup(id int) *Order {
	bucket := t.buckets[id&1023] // Table.buckets.array Table.buckets.len []Order.array []Order.len
	for i := range bucket {
		if bucket[i].ID == id { // Order.ID
			t.hits++ // Table.hits
			return &bucket[i]
		}
	}
	return nil
}

func main() {
	rounds := 60
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	const n = 20000
	orders := make([]Order, n)
	tree := &Tree{}
	book := &Book{Bids: make([]Side, n), Asks: make([]Side, n)}
	table := &Table{buckets: make([][]Order, 1024)}
	var head *Order
	for i := range orders {
		at := i * 7919 % n
		orders[at] = Order{ID: i, Flags: int32(i), Price: 1, Next: head}
		head = &orders[at]
		place := &tree.Root
		for *place != nil {
			if at < (*place).Key {
				place = &(*place).Left
			} else {
				place = &(*place).Right
			}
		}
		*place = &Node{Key: at, Order: head}
		book.Bids[i] = Side{int32(i & 15), 1}
		book.Asks[i] = Side{int32(i & 7), 2}
		table.buckets[i&1023] = append(table.buckets[i&1023], orders[at])
	}
	sum := 0.0
	for r := 0; r < rounds; r++ {
		sum += walk(head) + float64(mark(orders, r)+match(book))
		for i := 0; i < 4000; i++ {
			if o := tree.find(i * 17 % n); o != nil {
				sum += float64(o.Uses) // Order.Counted.Uses float64.
			}
			if o := table.lookup(i * 31 % n); o != nil {
				sum += o.Price // Order.Price float64.
			}
		}
	}
	fmt.Println(sum, tree.Lookups, table.hits)
}
