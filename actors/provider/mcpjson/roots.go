package mcpjson

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Folders are the roots as absolute paths: variables replaced, ~/ is HOME, a file URI its path, and what is relative lies in dir. One
// that cannot be used is a problem, and is left out.
func (s *Set) Folders(env func(string) (string, bool), dir string) (folders []string, problems []Problem) {
	for i, written := range s.Roots {
		folder, bad := folderOf(written, env, dir)
		if bad != "" {
			p := s.rootAt[i]
			p.Text = "roots: one of them " + bad + "; it is left out"
			problems = append(problems, p)
			continue
		}
		folders = append(folders, folder)
	}
	return folders, problems
}

func folderOf(written string, env func(string) (string, bool), dir string) (folder, bad string) {
	text, _, _, bad := expand(written, env)
	if bad != "" {
		return "", bad
	}
	if strings.HasPrefix(text, "file:") {
		u, err := url.Parse(text)
		if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return "", "is no file URI of this machine"
		}
		text = u.Path
	}
	if rest, ok := strings.CutPrefix(text+"/", "~/"); ok {
		home, set := env("HOME")
		if !set || home == "" {
			return "", "begins with ~, and HOME is not set"
		}
		text = filepath.Join(home, rest)
	}
	switch {
	case text == "" || strings.ContainsRune(text, 0):
		return "", "is empty once its variables are replaced"
	case filepath.IsAbs(text):
		return filepath.Clean(text), ""
	}
	return filepath.Join(dir, text), ""
}
