//! Rust text, split into code and comments.
//!
//! Owns: where a comment, a string and a test module begin and end. Never: parses further.

/// One file's text twice, line for line: only its code, and only its comments; the rest is blank.
pub(super) struct Source {
    /// Code without comments and without text in quotes.
    pub(super) code: String,
    /// Comments of both kinds, documentation included.
    pub(super) comments: String,
}

/// What a run of characters is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    /// A string, byte string, raw string or character, with its quotes.
    Quoted,
}

impl Source {
    /// Splits `text`.
    pub(super) fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Self { code: String::new(), comments: String::new() };
        let mut at = 0;
        while at < chars.len() {
            let (kind, end) = piece(&chars, at);
            for c in chars.iter().take(end).skip(at) {
                let is_break = *c == '\n';
                source.code.push(if is_break || kind == Kind::Code { *c } else { ' ' });
                source.comments.push(if is_break || kind == Kind::Comment { *c } else { ' ' });
            }
            at = end;
        }
        source
    }

    /// Each identifier of the code with its line, from 1.
    pub(super) fn identifiers(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_other = |c: char| !(c.is_alphanumeric() || c == '_');
        self.code.lines().enumerate().flat_map(move |(index, line)| {
            line.split(is_other).filter(|word| !word.is_empty()).map(move |word| (index + 1, word))
        })
    }

    /// For each line, whether it belongs to an item marked `#[cfg(test)]`.
    pub(super) fn test_lines(&self) -> Vec<bool> {
        let mut is_test = vec![false; self.code.lines().count()];
        for (start, _) in self.code.match_indices("#[cfg(test)]") {
            let end = item_end(&self.code, start);
            let line_of = |at: usize| self.code.bytes().take(at).filter(|byte| *byte == b'\n').count();
            let (first, last) = (line_of(start), line_of(end));
            is_test.iter_mut().take(last + 1).skip(first).for_each(|line| *line = true);
        }
        is_test
    }
}

/// Where the item at `start` ends: at its `;`, or where its first brace closes.
fn item_end(code: &str, start: usize) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices().filter(|(at, _)| *at >= start) {
        match c {
            ';' if depth == 0 => return at,
            '{' => depth += 1,
            '}' if depth <= 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// What starts at `at`, and where it ends.
fn piece(chars: &[char], at: usize) -> (Kind, usize) {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => (Kind::Comment, line_end(chars, at)),
        '/' if next == Some('*') => (Kind::Comment, block_comment_end(chars, at)),
        '"' => (Kind::Quoted, quoted_end(chars, at, '"')),
        'r' if !continues_word(chars, at) => match raw_string_end(chars, at) {
            Some(end) => (Kind::Quoted, end),
            None => (Kind::Code, at + 1),
        },
        // A quote that no other closes is a lifetime's.
        '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => {
            (Kind::Quoted, quoted_end(chars, at, '\''))
        }
        _ => (Kind::Code, at + 1),
    }
}

fn line_end(chars: &[char], from: usize) -> usize {
    (from..chars.len()).find(|at| chars[*at] == '\n').unwrap_or(chars.len())
}

/// Block comments nest.
fn block_comment_end(chars: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) if depth == 1 => return at + 2,
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Where `r"…"` or `r#"…"#` ends; none when no raw string starts here, as in `r#type`.
fn raw_string_end(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let open = from + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let closes = |at: &usize| {
        chars[*at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    Some((open + 1..chars.len()).find(closes).map_or(chars.len(), |at| at + 1 + hashes))
}

/// Whether the character at `at` goes on a word; the prefixes `b` and `c` of a raw string aren't a word.
fn continues_word(chars: &[char], at: usize) -> bool {
    let is_word = |at: usize| chars[at].is_alphanumeric() || chars[at] == '_';
    match at {
        0 => false,
        1 => is_word(0) && !matches!(chars[0], 'b' | 'c'),
        _ => is_word(at - 1) && (!matches!(chars[at - 1], 'b' | 'c') || is_word(at - 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_words(text: &str) -> Vec<String> {
        Source::of(text).identifiers().map(|(_, word)| word.to_owned()).collect()
    }

    #[test]
    fn comments_and_quoted_text_are_no_code() {
        let text = r###"
            // line
            let a = "s \" s"; /* block /* nested */ still */ let b = r#"raw " raw"#;
            let c = br"bytes"; let d = b"bytes"; let e = ('x', '\'', '"');
        "###;

        assert_eq!(code_words(text), ["let", "a", "let", "b", "let", "c", "b", "let", "d", "b", "let", "e"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        let text = "fn f<'a, 'b>(r#type: &'a str, x: &'b for_r) {}";

        assert_eq!(code_words(text), ["fn", "f", "a", "b", "r", "type", "a", "str", "x", "b", "for_r"]);
    }

    #[test]
    fn comments_keep_their_line() {
        let source = Source::of("let a = \"// no\";\nlet b; // yes\n");
        let lines: Vec<_> = source.comments.lines().map(str::trim).collect();

        assert_eq!(lines, ["", "// yes"]);
    }

    #[test]
    fn modules_of_tests_are_told_from_the_rest() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\"; }\n}\nfn c() {}\n";

        assert_eq!(Source::of(text).test_lines(), [false, true, true, true, true, false]);
    }
}
