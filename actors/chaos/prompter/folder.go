package prompter

import "os"

// makeFolder makes the folder of records; every uid may enter itself, because a pod may run as another than the harness.
func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	return os.Chmod(path, 0o777)
}
