package slurmconf

import (
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// gpuFile is the name of a whole GPU's device file, in /dev or in the dev folder of a root elsewhere. All
// other files are no GPU's, whatever number they end with: /dev/nvidiactl, /dev/nvidia-uvm, and
// /dev/nvidia-caps/nvidia-cap21, which is a part of one.
var gpuFile = regexp.MustCompile(`/dev/(?:nvidia(0|[1-9][0-9]?|1[01][0-9]|12[0-7])|` +
	`dri/renderD(1(?:2[89]|[3-9][0-9])|[2-9][0-9]{2})|dri/(card(?:0|[1-9][0-9]{0,2})))$`)

// maxLinks bounds a chain of symbolic links.
const maxLinks = 8

// deviceOf returns the GPU whose device file is named, by the file that a symbolic link leads to.
func deviceOf(fsys fs.FS, file string) Device {
	d := Device{File: file, Minor: -1}
	name := resolveLinks(fsys, file)
	m := gpuFile.FindStringSubmatch(name)
	if m == nil {
		return d
	}
	render := m[2]
	if m[3] != "" {
		render = renderNodeOf(fsys, m[3])
	}
	if minor, err := strconv.Atoi(m[1] + render); err == nil {
		d.Minor, d.linked = minor, m[3] != "" || name != file
	}
	return d
}

// renderNodeOf returns the number of the render node of a card in /dev/dri, as sysfs has it, or empty.
func renderNodeOf(fsys fs.FS, card string) string {
	nodes, err := fs.Glob(fsys, path.Join("sys/class/drm", card, "device/drm/renderD*"))
	if err != nil || len(nodes) != 1 {
		return ""
	}
	return strings.TrimPrefix(path.Base(nodes[0]), "renderD")
}

// resolveLinks follows symbolic links; "" where they lead nowhere. A link to /dev/null keeps its name: labs
// without GPUs have such device files.
func resolveLinks(fsys fs.FS, file string) string {
	file = path.Clean(file)
	for range maxLinks {
		target, err := fs.ReadLink(fsys, strings.TrimPrefix(file, "/"))
		if err != nil || target == "/dev/null" {
			return file
		}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file), target)
		}
		file = path.Clean(target)
	}
	return ""
}
