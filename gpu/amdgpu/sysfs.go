package amdgpu

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/epplan/epplan/gpu"
)

// Sysfs is the kernel's folder of devices. Names are relative to it.
type Sysfs interface {
	ReadFile(name string) ([]byte, error)
	// WriteFile writes in one call: the kernel takes each write for a command.
	WriteFile(name string, data []byte) error
	// Names are those in a folder, in order.
	Names(folder string) ([]string, error)
	Readlink(name string) (string, error)
	// Writable reports whether the kernel lets anybody write to a file, as its mode says.
	Writable(name string) bool
}

// Folder is a real one, such as "/sys".
type Folder string

// maxFile is more than a page, which is the most that a file of the kernel's has.
const maxFile = 64 << 10

// ReadFile is part of [Sysfs].
func (f Folder) ReadFile(name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(string(f), name))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// WriteFile is part of [Sysfs].
func (f Folder) WriteFile(name string, data []byte) error {
	file, err := os.OpenFile(filepath.Join(string(f), name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// Names is part of [Sysfs].
func (f Folder) Names(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(f), folder))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Readlink is part of [Sysfs].
func (f Folder) Readlink(name string) (string, error) {
	return os.Readlink(filepath.Join(string(f), name))
}

// Writable is part of [Sysfs].
func (f Folder) Writable(name string) bool {
	info, err := os.Stat(filepath.Join(string(f), name))
	return err == nil && info.Mode().Perm()&0o222 != 0
}

// files are those of one PCI device.
type files struct {
	sys  Sysfs
	base string // the device's folder
}

// text returns a file's text, without blanks around it.
func (f files) text(name string) (string, error) {
	data, err := f.sys.ReadFile(filepath.Join(f.base, name))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

// write gives the kernel a command.
func (f files) write(name, command string) error {
	err := f.sys.WriteFile(filepath.Join(f.base, name), []byte(command+"\n"))
	if err != nil {
		return fmt.Errorf("write %q to %s: %w", command, name, err)
	}
	return nil
}

// fault is an error of the kernel's in the words of package gpu.
func (d *Device) fault(op gpu.Op, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("GPU %s: %v: %w", d.id.Bus, op, d.classify(err))
}

// classify tells what an error means. The amdgpu driver answers EPERM while it resets
// the GPU or the GPU sleeps, too; of root's own, that is what it means, and passes.
func (d *Device) classify(err error) error {
	var kind error
	isKernels := func(codes ...syscall.Errno) bool {
		return slices.ContainsFunc(codes, func(code syscall.Errno) bool { return errors.Is(err, code) })
	}
	switch {
	case isClassified(err):
	case isKernels(syscall.EACCES, syscall.EROFS), isKernels(syscall.EPERM) && !d.library.root:
		kind = gpu.ErrPermission
	case isKernels(syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.ENODATA):
		kind = gpu.ErrNotSupported
	case isKernels(syscall.ENODEV, syscall.ENXIO):
		kind = gpu.ErrLost
	case errors.Is(err, fs.ErrNotExist):
		kind = d.missingFileError()
	}
	switch {
	case kind == nil:
		return err
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: /sys is read-only here, as with ProtectKernelTunables=yes in a unit of "+
			"systemd: %w", kind, err)
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// isClassified reports whether an error is one of package gpu's already.
func isClassified(err error) bool {
	return errors.Is(err, gpu.ErrPermission) || errors.Is(err, gpu.ErrNotSupported) ||
		errors.Is(err, gpu.ErrLost) || errors.Is(err, gpu.ErrReloaded)
}

// missingFileError says what became of a GPU of which a file is gone: the GPU itself is, its
// driver was unloaded or is another one, or there is no such file.
func (d *Device) missingFileError() error {
	if len(d.files.names(".")) == 0 {
		return gpu.ErrLost
	}
	if d.sensors.folder != "" && !slices.Contains(d.files.names("hwmon"), filepath.Base(d.sensors.folder)) ||
		!slices.Contains(d.files.names("drm"), fmt.Sprintf("renderD%d", d.id.Minor)) {
		return gpu.ErrReloaded
	}
	return gpu.ErrNotSupported
}

// names returns those in a folder of the device's, none where there is no folder.
func (f files) names(folder string) []string {
	names, _ := f.sys.Names(filepath.Join(f.base, folder))
	return names
}

// isWritable reports whether the kernel takes commands by a file.
func (f files) isWritable(name string) bool { return f.sys.Writable(filepath.Join(f.base, name)) }

// errText tells that a file has something in it that isn't known.
var errText = errors.New("unknown text")

// number reads a file that has one number, not negative.
func (f files) number(name string) (float64, error) {
	text, err := f.text(name)
	if err != nil {
		return 0, err
	}
	if text == "" {
		return 0, fmt.Errorf("%s is empty: %w", name, gpu.ErrNotSupported)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %.40q, want a number: %w", name, text, errText)
	}
	return float64(n), nil
}
