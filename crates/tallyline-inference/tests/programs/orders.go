package main

import "fmt"

type Item struct {
	Key    int
	Flags  int32
	Weight float64
	Next   *Item
	Name   string
}

type Cost interface{ Cost() int }

func (i *Item) Cost() int {
	return i.Key // Item.Key
}

//go:noinline
func walk(i *Item) int {
	sum := 0
	for i != nil {
		sum += i.Key // Item.Key
		i.Flags++    // Item.Flags
		i = i.Next   // Item.Next
	}
	return sum
}

//go:noinline
func sumOf(items []Item) float64 {
	sum := 0.0
	for i := range items {
		if items[i].Flags&1 == 1 { // Item.Flags
			sum += items[i].Weight // Item.Weight
		}
	}
	return sum
}

//go:noinline
func pointers(items []*Item) int {
	sum := 0
	for _, p := range items { // Item*.
		sum += p.Key       // Item.Key
		sum += len(p.Name) // Item.Name.len
	}
	return sum
}

//go:noinline
func inMap(m map[int]*Item, key int) int {
	p, ok := m[key] // Item*. g.stackguard0
	if ok {
		return int(p.Flags) // Item.Flags
	}
	return 0
}

//go:noinline
func inValues(m map[int]Item, key int) int {
	return m[key].Key // Item.Key
}

//go:noinline
func costs(items []Cost) int {
	sum := 0
	for _, c := range items {
		sum += c.Cost() // iface.tab iface.data ITab.Fun[] int.
	}
	return sum
}

func main() {
	var head *Item
	items, pointed := []Item{}, []*Item{}
	m, values := map[int]*Item{}, map[int]Item{}
	all := []Cost{}
	for i := 0; i < 1000; i++ {
		item := &Item{Key: i, Flags: int32(i), Next: head, Name: fmt.Sprint(i)}
		head = item
		items = append(items, *item)
		pointed = append(pointed, item)
		m[i] = item
		values[i] = *item
		all = append(all, item)
	}
	sum := 0.0
	for r := 0; r < 100; r++ {
		sum += float64(walk(head)+pointers(pointed)+costs(all)) + sumOf(items)
		for i := 0; i < 1000; i++ {
			sum += float64(inMap(m, i) + inValues(values, i))
		}
	}
	fmt.Println(sum)
}
