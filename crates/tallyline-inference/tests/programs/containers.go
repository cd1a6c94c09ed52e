// Values that Go's maps, channels and slices of slices hold, published.
package main

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

type Item struct {
	Key    uint64
	Flags  uint32
	Uses   uint32
	Weight float64
	Label  string
}

type Session struct {
	Packets, Bytes uint64
	Port           uint16
	Item           *Item
}

//go:noinline
func inMap(items map[uint64]*Item, key uint64) float64 {
	item := items[key]
	if item == nil {
		return 0
	}
	item.Uses++
	return item.Weight
}

//go:noinline
func allMap(sessions map[string]*Session) uint64 {
	var sum uint64
	for _, session := range sessions {
		sum += session.Bytes + session.Item.Key
		session.Packets++
	}
	return sum
}

//go:noinline
func received(from chan *Session) uint64 {
	var sum uint64
	for session := range from {
		session.Bytes += 64
		sum += uint64(session.Port) + uint64(len(session.Item.Label))
	}
	return sum
}

//go:noinline
func nested(rows [][]Item, column int) float64 {
	sum := 0.0
	for _, row := range rows {
		sum += row[column].Weight
		row[column].Flags ^= 1
		for i := range row {
			row[i].Uses += uint32(i)
		}
	}
	return sum
}

func main() {
	// one thread's order of accesses is known
	runtime.LockOSThread()
	items := map[uint64]*Item{}
	sessions := map[string]*Session{}
	rows := [][]Item{}
	channel := make(chan *Session, 64)
	for i := 0; i < 40; i++ {
		item := &Item{Key: uint64(i), Label: "label"}
		session := &Session{Item: item, Port: uint16(i)}
		publish("Item", unsafe.Pointer(item), unsafe.Sizeof(*item), 1)
		publish("Session", unsafe.Pointer(session), unsafe.Sizeof(*session), 1)
		items[uint64(i)*3] = item
		sessions[fmt.Sprint(i)] = session
		channel <- session
	}
	close(channel)
	for i := 0; i < 8; i++ {
		row := make([]Item, 6)
		publish("Item", unsafe.Pointer(&row[0]), unsafe.Sizeof(row[0]), len(row))
		rows = append(rows, row)
	}
	total := nested(rows, 3)
	sum := allMap(sessions) + received(channel)
	for i := 0; i < 40; i++ {
		total += inMap(items, uint64(i))
	}
	if total == 1 && sum == 1 {
		os.Exit(1)
	}
}
