// Objects of Go programs, published: slices, structs in structs, trees, interfaces, rings.
package main

import (
	"os"
	"runtime"
	"unsafe"
)

type Node struct {
	Key         int
	Left, Right *Node
	Weight      float64
	Visits      uint32
	Red         bool
}

type Stats struct {
	Packets, Bytes uint64
	Errors         [4]uint32
}

type Sample struct {
	Time    int64
	Value   float64
	Channel uint16
	Count   uint32
	In, Out Stats
	Name    string
	Tags    []string
}

type Slot struct {
	Sequence uint64
	Length   uint32
	Port     uint16
	Data     [34]byte
}

type Ring struct {
	Head, Tail int
	Drops      uint64
	Slots      []Slot
}

type Meter interface{ Add(value uint64) uint64 }

type Sum struct {
	Total uint64
	Calls uint32
}

type Peak struct {
	Most, Least uint64
	Changes     uint32
	Last        [4]uint64
}

//go:noinline
func (s *Sum) Add(value uint64) uint64 {
	s.Calls++
	s.Total += value
	return s.Total
}

//go:noinline
func (p *Peak) Add(value uint64) uint64 {
	if value > p.Most {
		p.Most = value
		p.Changes++
	}
	if value < p.Least {
		p.Least = value
	}
	p.Last[value&3] = value
	return p.Most - p.Least
}

//go:noinline
func insert(node, fresh *Node) {
	for {
		node.Visits++
		if fresh.Key < node.Key {
			if node.Left == nil {
				node.Left = fresh
				return
			}
			node = node.Left
		} else {
			if node.Right == nil {
				node.Right = fresh
				return
			}
			node = node.Right
		}
	}
}

//go:noinline
func weigh(node *Node) float64 {
	if node == nil {
		return 0
	}
	sum := node.Weight + float64(node.Visits)
	if node.Red {
		sum = -sum
	}
	return sum + weigh(node.Left) - weigh(node.Right)
}

//go:noinline
func smooth(samples []Sample) float64 {
	sum := 0.0
	for i := range samples {
		samples[i].Count++
		samples[i].Value *= 0.5
		if samples[i].Channel == 3 {
			sum += float64(samples[i].Time)
		}
		samples[i].In.Packets++
		samples[i].Out.Bytes += samples[i].In.Bytes
	}
	return sum
}

//go:noinline
func faults(samples []Sample, which int) uint32 {
	var sum uint32
	for i := range samples {
		sample := &samples[i]
		sum += sample.In.Errors[which&3] + sample.Out.Errors[(which+1)&3]
		sample.Out.Errors[which&3]++
		sum += uint32(len(sample.Name)) + uint32(len(sample.Tags))
	}
	return sum
}

//go:noinline
func byIndex(samples []Sample, indices []int) int64 {
	var sum int64
	for _, index := range indices {
		sum += samples[index].Time + int64(samples[index].Count)
	}
	return sum
}

//go:noinline
func put(ring *Ring, length uint32, port uint16) {
	next := (ring.Head + 1) % len(ring.Slots)
	if next == ring.Tail {
		ring.Drops++
		return
	}
	slot := &ring.Slots[ring.Head]
	slot.Sequence++
	slot.Length = length
	slot.Port = port
	slot.Data[length%34] = byte(port)
	ring.Head = next
}

//go:noinline
func take(ring *Ring) uint64 {
	var sum uint64
	for ring.Tail != ring.Head {
		slot := &ring.Slots[ring.Tail]
		sum += slot.Sequence + uint64(slot.Length) + uint64(slot.Data[3])
		ring.Tail = (ring.Tail + 1) % len(ring.Slots)
	}
	return sum
}

//go:noinline
func dynamic(meters []Meter) uint64 {
	var sum uint64
	for i, meter := range meters {
		sum += meter.Add(uint64(i) * 3)
	}
	return sum
}

//go:noinline
func pointers(nodes []*Node) int {
	sum := 0
	for _, node := range nodes {
		sum += node.Key
		node.Weight += 1
	}
	return sum
}

func main() {
	// one thread's order of accesses is known
	runtime.LockOSThread()
	root := &Node{Key: 50}
	publish("Node", unsafe.Pointer(root), unsafe.Sizeof(*root), 1)
	nodes := []*Node{}
	for i := 0; i < 60; i++ {
		fresh := &Node{Key: i * 37 % 100, Weight: float64(i), Red: i&1 == 0}
		publish("Node", unsafe.Pointer(fresh), unsafe.Sizeof(*fresh), 1)
		nodes = append(nodes, fresh)
		insert(root, fresh)
	}
	samples := make([]Sample, 50)
	publish("Sample", unsafe.Pointer(&samples[0]), unsafe.Sizeof(samples[0]), len(samples))
	ring := &Ring{Slots: make([]Slot, 16)}
	publish("Ring", unsafe.Pointer(ring), unsafe.Sizeof(*ring), 1)
	publish("Slot", unsafe.Pointer(&ring.Slots[0]), unsafe.Sizeof(ring.Slots[0]), 16)
	meters := []Meter{}
	for i := 0; i < 5; i++ {
		sum, peak := &Sum{}, &Peak{Least: 9}
		publish("Sum", unsafe.Pointer(sum), unsafe.Sizeof(*sum), 1)
		publish("Peak", unsafe.Pointer(peak), unsafe.Sizeof(*peak), 1)
		meters = append(meters, sum, peak)
	}
	var sum uint64
	for round := 0; round < 40; round++ {
		put(ring, uint32(round), uint16(round))
		if round%9 == 0 {
			sum += take(ring)
		}
	}
	total := weigh(root) + smooth(samples) + float64(byIndex(samples, []int{3, 5, 17})) + float64(pointers(nodes))
	sum += uint64(faults(samples, 2)) + dynamic(meters)
	if total == 1 && sum == 1 {
		os.Exit(1)
	}
}
