package provider

import "testing"

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		tool             string
		want             bool
	}{
		{nil, nil, "anything", true},
		{[]string{}, nil, "anything", false},
		{[]string{"read_*"}, nil, "read_file", true},
		{[]string{"read_*"}, nil, "Read_file", false},
		{[]string{"read_*"}, nil, "pre_read_file", false},
		{[]string{"read"}, nil, "read_file", false},
		{[]string{"*"}, []string{"*delete*"}, "undelete_it", false},
		{[]string{"delete"}, []string{"delete"}, "delete", false},
		{nil, []string{"send_?"}, "send_a", true}, // only * is special
		{nil, []string{"a.b"}, "axb", true},
		{[]string{"a*b*c"}, nil, "abc", true},
		{[]string{"a*b*c"}, nil, "a-b-b-c", true},
		{[]string{"a*b*c"}, nil, "acb", false},
		{[]string{"ab*ba"}, nil, "aba", false}, // the ends do not share a letter
		{[]string{"**"}, nil, "", true},
		{[]string{"[a-z]*"}, nil, "[a-z]x", true},
	} {
		if got := (filter{c.include, c.exclude}).allows(c.tool); got != c.want {
			t.Errorf("include %q exclude %q: %q is %v", c.include, c.exclude, c.tool, got)
		}
	}
}
