package policies

import "github.com/admission-gateway/gateway/internal/manifest"

// File is a policy file of a Set.
type File struct {
	// Name is the file's name as the paths led to it.
	Name string
	// Objects are what it holds, in its order.
	Objects []FileObject
}

// FileObject names an object in a policy file.
type FileObject struct {
	APIVersion, Kind, Namespace, Name string
}

// Files are the files that the set was made of, by name. The answer must not be changed.
func (s *Set) Files() []File { return s.files }

func inventoryOf(name string, objects []*manifest.Object) File {
	f := File{Name: name, Objects: make([]FileObject, len(objects))}
	for i, o := range objects {
		f.Objects[i] = FileObject{o.APIVersion, o.Kind, o.Namespace, o.Name}
	}
	return f
}
