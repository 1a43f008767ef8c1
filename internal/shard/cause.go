package shard

// Because adds to a write of a health row why its service does not take what it is sent: a class
// and names, never content. It is cut. The row keeps it after the service is back, until the next
// one takes its place. No condition looks at it.
func (w Write) Because(why string) Write {
	if why != "" {
		w.Update = append(w.Update, set(AttrLastError, textValue(cut(why))))
	}
	return w
}
