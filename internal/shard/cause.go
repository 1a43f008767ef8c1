// SPDX-License-Identifier: Apache-2.0

package shard

// Because adds to a write of a health row the reason why the service does not accept its requests:
// a class and names, never content. The text is cut to [MaxLastError] bytes. The row keeps the text
// after the service is back, until another text replaces it. No condition reads the text.
func (w Write) Because(why string) Write {
	if why != "" {
		w.Update = append(w.Update, set(AttrLastError, textValue(cut(why))))
	}
	return w
}
