// Reads an exposition as Prometheus does when it scrapes, by its own parsers, and prints what it understood: a line for
// each series with a value, and for each native histogram, which it validates.
// usage: go run . FILE CONTENT-TYPE
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

func main() {
	if err := read(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(file, contentType string) error {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	options := textparse.ParserOptions{KeepClassicOnClassicAndNativeHistograms: true}
	parser, err := textparse.New(bytes, contentType, nil, options)
	if err != nil {
		return err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var series labels.Labels
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			fmt.Printf("%s is a %s\n", name, kind)
		case textparse.EntryHelp:
			name, help := parser.Help()
			fmt.Printf("%s has the help text %q\n", name, help)
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			parser.Labels(&series)
			fmt.Println(series, value)
		case textparse.EntryHistogram:
			_, _, histogram, _ := parser.Histogram()
			parser.Labels(&series)
			if err := histogram.Validate(); err != nil {
				return fmt.Errorf("%s: %w", series, err)
			}
			fmt.Println(series, "schema", histogram.Schema, histogram)
		}
	}
}
