// Package browser opens a report in Chromium, clicks through it, and checks what it shows. It is a
// module of its own, so that nobody who uses Varve downloads a browser's protocol.
//
//	apt-get install chromium
//	cd sim/report/browser && go test .
//	VARVE_SCREENSHOTS=/tmp/shots go test .     # also keeps pictures: wide and narrow, light and dark
package browser
