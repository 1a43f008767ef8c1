package docs

import "strings"

// Commands are the simple commands of a shell script, word by word: enough of a shell for what
// documents show. Comments and the text of here-documents are left out; what a substitution $(...)
// runs is a command of its own.
func Commands(script string) (all [][]string) {
	var words []string
	var word strings.Builder
	quoted := false // the word is a word even if it is empty
	end := func() {
		if quoted || word.Len() > 0 {
			words = append(words, word.String())
		}
		word.Reset()
		quoted = false
	}
	flush := func() {
		end()
		if len(words) > 0 {
			all = append(all, words)
		}
		words = nil
	}
	var here []string // the ends of here-documents that begin at the next line
	for i := 0; i < len(script); i++ {
		c := script[i]
		rest := script[i:]
		switch {
		case strings.HasPrefix(rest, "\\\n"):
			i++
		case c == '\\' && len(rest) > 1:
			i++
			word.WriteByte(script[i])
		case c == '\'':
			length := strings.IndexByte(rest[1:], '\'')
			if length < 0 {
				length = len(rest) - 1
			}
			word.WriteString(rest[1 : 1+length])
			i += length + 1
			quoted = true
		case c == '"':
			for i++; i < len(script) && script[i] != '"'; i++ {
				if strings.HasPrefix(script[i:], "$(") {
					if length := strings.IndexByte(script[i:], ')'); length > 0 {
						all = append(all, Commands(script[i+2:i+length])...)
					}
				}
				word.WriteByte(script[i])
			}
			quoted = true
		case c == '#' && word.Len() == 0 && !quoted:
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case strings.HasPrefix(rest, "<<<"):
			i += 2
		case strings.HasPrefix(rest, "<<"):
			end()
			mark := strings.TrimLeft(rest, "<- ")
			skipped := len(rest) - len(mark)
			if length := strings.IndexAny(mark, " \n|&;)"); length >= 0 {
				mark = mark[:length]
			}
			here = append(here, strings.Trim(mark, `'"`))
			i += skipped + len(mark) - 1
		case c == '\n':
			flush()
			for _, mark := range here {
				_, after, found := strings.Cut(script[i:], "\n"+mark+"\n")
				if !found {
					return all
				}
				i = len(script) - len(after) - 1
			}
			here = nil
		case strings.HasPrefix(rest, "$("):
			flush()
			i++
		case strings.IndexByte("|&;()", c) >= 0:
			flush()
		case c == ' ' || c == '\t':
			end()
		default:
			word.WriteByte(c)
		}
	}
	flush()
	return all
}

// Program is the command without what stands before the program: variables, and programs that run
// another one.
func Program(words []string) []string {
	for len(words) > 0 {
		name, _, assigned := strings.Cut(words[0], "=")
		switch {
		case assigned && name != "" && !strings.ContainsAny(name, "-/."):
		case words[0] == "time", words[0] == "do", words[0] == "then", words[0] == "if", words[0] == "!":
		default:
			return words
		}
		words = words[1:]
	}
	return words
}
