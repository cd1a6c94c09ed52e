// Where the time of a Go program on maps, slices and interfaces goes: each line says which fields it
// touches. With an argument it runs that many rounds.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type Order struct {
	ID    int
	Flags int32
	Price float64
	Name  string
}

type Customer struct {
	Orders []Order
	Visits int
}

type Task interface{ Run() int }

type Sum struct{ Total, Step int }

type Mean struct {
	Seen int
	Mean float64
}

func (s *Sum) Run() int {
	s.Total += s.Step // Sum.Total Sum.Step
	return s.Total    // Sum.Total
}

func (m *Mean) Run() int {
	m.Seen++      // Mean.Seen
	m.Mean += 0.5 // Mean.Mean
	return m.Seen // Mean.Seen
}

//go:noinline
func pointers(orders map[int]*Order, key int) int {
	o := orders[key] // Order*.
	if o == nil {
		return 0
	}
	o.Flags ^= 1 // Order.Flags
	return o.ID  // Order.ID
}

//go:noinline
func values(orders map[int]Order, key int) float64 {
	return orders[key].Price // Order.Price
}

//go:noinline
func all(orders map[int]*Order) float64 {
	sum := 0.0
	for _, o := range orders {
		sum += o.Price // Order.Price
	}
	return sum
}

//go:noinline
func customers(byName map[string]*Customer, name string) float64 {
	c := byName[name]
	if c == nil {
		return 0
	}
	c.Visits++ // Customer.Visits
	sum := 0.0
	for i := range c.Orders { // Customer.Orders.len Customer.Orders.array
		sum += c.Orders[i].Price // Order.Price Customer.Orders.array Customer.Orders.len
	}
	return sum
}

//go:noinline
func tasks(all []Task) int {
	sum := 0
	for _, t := range all { // iface.tab iface.data
		sum += t.Run() // iface.tab iface.data ITab.Fun[]
	}
	return sum
}

//go:noinline
func named(orders []*Order) int {
	sum := 0
	for _, o := range orders { // Order*.
		sum += len(o.Name) // Order.Name.len
	}
	return sum
}

//go:noinline
func kinds(all []any) int {
	sum := 0
	for _, v := range all { // eface._type eface.data
		switch v := v.(type) { // eface._type
		case *Order:
			sum += v.ID // Order.ID
		case *Customer:
			sum += v.Visits // Customer.Visits
		}
	}
	return sum
}

func main() {
	rounds := 40
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	const n = 8000
	byID, byValue, byName := map[int]*Order{}, map[int]Order{}, map[string]*Customer{}
	list, doers, things := []*Order{}, []Task{}, []any{}
	for i := 0; i < n; i++ {
		id := i * 7919 % n
		o := &Order{ID: id, Flags: int32(i), Price: 1.5, Name: fmt.Sprint("order ", id)}
		byID[id], byValue[id] = o, *o
		list = append(list, o)
		name := fmt.Sprint("customer ", id%1000)
		c := byName[name]
		if c == nil {
			c = &Customer{}
			byName[name] = c
		}
		c.Orders = append(c.Orders, *o)
		if i%3 == 0 {
			doers = append(doers, &Sum{Step: i})
			things = append(things, c)
		} else {
			doers = append(doers, &Mean{})
			things = append(things, o)
		}
	}
	sum := 0.0
	for r := 0; r < rounds; r++ {
		sum += all(byID) + float64(tasks(doers)+named(list)+kinds(things))
		for i := 0; i < n; i++ {
			sum += float64(pointers(byID, i*17%n)) + values(byValue, i*31%(n+99))
		}
		for i := 0; i < 300; i++ {
			sum += customers(byName, "customer 77")
		}
	}
	fmt.Println(sum)
}
