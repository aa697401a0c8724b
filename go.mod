module github.com/epplan/epplan

go 1.26.8
