package config

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// Options says where to read from. The zero value reads what a command without flags reads, with an empty environment.
type Options struct {
	File     string    // --config; must exist when it is given
	Environ  []string  // os.Environ()
	Settings []Setting // flags, applied in order
}

// Setting is one key set on the command line.
type Setting struct {
	Flag  string // as the user wrote it, such as "--set"
	Key   string // full path
	Value string
}

// Loaded is a configuration that passed every check, and how it came to be.
type Loaded struct {
	Config
	File    string            // the file that was read; empty = the built-in default
	Origins map[string]Origin // by full path of the leaf; a key that is not here has its default
	Secrets Secrets           // keys, read from their files
}

// Origin says who set a key.
func (l *Loaded) Origin(path string) Origin { return l.Origins[path] }

// tableOrigin is the origin of a table with free names: its own, or that of its names when only those were set, one by one.
func (l *Loaded) tableOrigin(path string) string {
	found := map[string]bool{}
	if o, set := l.Origins[path]; set {
		found[o.String()] = true
	}
	for name, o := range l.Origins {
		if strings.HasPrefix(name, path+".") {
			found[o.String()] = true
		}
	}
	if len(found) == 0 {
		return Origin{}.String()
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

// Load reads, checks and merges all layers. Every error is one line; most are an [*Error].
func Load(o Options) (*Loaded, error) {
	env := newEnvironment(o.Environ)
	path, err := find(o.File, env.lookup)
	if err != nil {
		return nil, err
	}
	if path == "" {
		return LoadBytes("", nil, o)
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return LoadBytes(path, text, o)
}

// LoadBytes is Load with the file's text at hand; an empty name means that there is no file.
func LoadBytes(name string, text []byte, o Options) (*Loaded, error) {
	env := newEnvironment(o.Environ)
	out := &Loaded{File: name, Origins: map[string]Origin{}}
	var layers []*layer
	if name != "" {
		file, err := parseFile(name, text, env.lookup)
		if err != nil {
			return nil, err
		}
		layers = append(layers, file)
	}
	fromEnv, err := parseEnv(env)
	if err != nil {
		return nil, err
	}
	fromFlags, err := parseFlags(o.Settings)
	if err != nil {
		return nil, err
	}
	layers = append(layers, fromEnv, fromFlags)

	defaults := tree(reflect.ValueOf(Default()))
	if name != "" && !anyNames(layers, "mcp") {
		delete(defaults, "mcp") // the contract: without [mcp] in a given configuration there is no facade
	}
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(defaults, ""), nil); err != nil {
		return nil, err
	}
	for _, l := range layers {
		if err := k.Load(confmap.Provider(l.values, ""), nil); err != nil {
			return nil, err
		}
		maps.Copy(out.Origins, l.origins)
	}
	if err := k.UnmarshalWithConf("", &out.Config, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName: "koanf", ErrorUnused: true, Result: &out.Config,
		MatchName: func(a, b string) bool { return a == b },
	}}); err != nil {
		return nil, err
	}
	if out.Secrets, err = out.readSecrets(os.ReadFile); err != nil {
		return nil, err
	}
	return out, out.cross()
}

func anyNames(layers []*layer, section string) bool {
	for _, l := range layers {
		if _, ok := l.values[section]; ok {
			return true
		}
	}
	return false
}

// tree turns the struct into the nested map that koanf merges into.
func tree(v reflect.Value) map[string]any {
	out := map[string]any{}
	for field, value := range v.Fields() {
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		out[field.Tag.Get("koanf")] = plain(value)
	}
	return out
}

func plain(v reflect.Value) any {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return v.Interface()
	case v.Kind() == reflect.Struct:
		return tree(v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = tree(v.Index(i))
		}
		return list
	case v.Kind() == reflect.Map:
		table := map[string]any{}
		for name, item := range v.Seq2() {
			table[name.String()] = item.String()
		}
		return table
	default:
		return v.Interface()
	}
}
