module slicewatch/testbed/pause

go 1.26.0
