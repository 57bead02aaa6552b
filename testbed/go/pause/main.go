// Command pause is the only program in the containers of the test cluster: it holds a pod's
// sandbox open and plays the workloads, since the tests reach no image registry.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	lifetime := flag.Duration("exit-after", 0, "end by itself after this time; 0 waits for a signal")
	code := flag.Int("exit-code", 0, "exit status when it ends by itself")
	flag.Parse()

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	var expired <-chan time.Time
	if *lifetime > 0 {
		expired = time.After(*lifetime)
	}
	fmt.Println("waiting")
	select {
	case <-ended:
	case <-expired:
		os.Exit(*code)
	}
}
