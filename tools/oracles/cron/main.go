// Reads JSON lines {"spec","from","zone","count"}; prints the next times or the error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron/v3"
)

type in struct {
	Spec, From, Zone string
	Count            int
}

func main() {
	scan := bufio.NewScanner(os.Stdin)
	for scan.Scan() {
		var q in
		if err := json.Unmarshal(scan.Bytes(), &q); err != nil {
			panic(err)
		}
		answer := map[string]any{"spec": q.Spec, "zone": q.Zone, "from": q.From}
		loc, err := time.LoadLocation(q.Zone)
		if err != nil {
			panic(err)
		}
		t, err := time.Parse(time.RFC3339, q.From)
		if err != nil {
			panic(err)
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					answer["error"] = fmt.Sprint("panic: ", r)
				}
			}()
			s, err := cron.ParseStandard(q.Spec)
			if err != nil {
				answer["error"] = err.Error()
				return
			}
			t = t.In(loc)
			times := []string{}
			for i := 0; i < q.Count; i++ {
				t = s.Next(t)
				if t.IsZero() {
					break
				}
				times = append(times, t.Format(time.RFC3339))
			}
			answer["times"] = times
		}()
		b, _ := json.Marshal(answer)
		fmt.Println(string(b))
	}
}
