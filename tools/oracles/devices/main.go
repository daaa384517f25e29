// Asks kube-scheduler's allocator of devices (k8s.io/dynamic-resource-allocation): one cluster per line of JSON on
// standard input, one answer per line: the allocations, null when there are none, or the error.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type cluster struct {
	Node      v1.Node                        `json:"node"`
	Slices    []*resourceapi.ResourceSlice   `json:"slices"`
	Classes   []*resourceapi.DeviceClass     `json:"classes"`
	Claims    []*resourceapi.ResourceClaim   `json:"claims"`
	Allocated []resourceapi.AllocationResult `json:"allocated"`
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if found, ok := c[name]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("device class %s not found", name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) GetDeviceClass(name v1.ResourceName) *resourceapi.DeviceClass { return nil }

func state(allocated []resourceapi.AllocationResult) structured.AllocatedState {
	found := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, allocation := range allocated {
		for _, result := range allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				found.AllocatedDevices.Insert(id)
				continue
			}
			share := types.UID(*result.ShareID)
			found.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share))
			found.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
		}
	}
	return found
}

func answer(line []byte) map[string]any {
	var asked cluster
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	known := classes{}
	for _, class := range asked.Classes {
		known[class.Name] = class
	}
	ctx := context.Background()
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
	}
	allocator, err := structured.NewAllocator(
		ctx, features, state(asked.Allocated), known, asked.Slices, cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	result, err := allocator.Allocate(ctx, &asked.Node, asked.Claims)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"allocations": result}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	for lines.Scan() {
		text, _ := json.Marshal(answer(lines.Bytes()))
		fmt.Println(string(text))
	}
}
