module github.com/epplan/epplan

go 1.26.8

require (
	golang.org/x/tools v0.52.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
