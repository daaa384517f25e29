// Reads pod templates, one JSON object a line, and prints the errors Kubernetes gives for each.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

type out struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Body   string `json:"body"`
}

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	for in.Scan() {
		var pt v1.PodTemplate
		if err := json.Unmarshal(in.Bytes(), &pt.Template); err != nil {
			fmt.Println(string(must(map[string]string{"decode": err.Error()})))
			continue
		}
		pt.Name = "task"
		pt.Namespace = "default"
		corev1.SetObjectDefaults_PodTemplate(&pt)
		var internal core.PodTemplateSpec
		if err := corev1.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&pt.Template, &internal, nil); err != nil {
			fmt.Println(string(must(map[string]string{"decode": err.Error()})))
			continue
		}
		opts := podutil.GetValidationOptionsFromPodTemplate(&internal, nil)
		errs := validation.ValidatePodTemplateSpec(&internal, field.NewPath("template"), opts)
		list := []out{}
		for _, e := range errs {
			list = append(list, out{e.Field, string(e.Type), e.Type.String(), e.ErrorBody()})
		}
		fmt.Println(string(must(list)))
	}
}

func must(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
