package bundles

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// write replaces a file, whole or not at all.
func write(name string, content []byte) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	_, err = temporary.Write(content)
	if err == nil {
		err = temporary.Sync()
	}
	if err = errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	if err = os.Rename(temporary.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

// syncDir has the names in a directory survive a power failure.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// touch notes in a file when it was last known to be the newest. If it cannot, the bundle is taken
// for older than it is after a restart.
func touch(name string, at time.Time) { _ = os.Chtimes(name, at, at) }
