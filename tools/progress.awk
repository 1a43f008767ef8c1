# Shows how far `go build -v` is, on one line: awk -v all=PACKAGES -f progress.awk. Other lines, such as errors, are
# printed as they are.
/^[A-Za-z0-9][A-Za-z0-9._\/~-]*$/ { printf "\rcompiled %d of %d packages", ++done, all > "/dev/stderr"; fflush("/dev/stderr"); next }
{ print > "/dev/stderr" }
END { if (done) print "" > "/dev/stderr" }
