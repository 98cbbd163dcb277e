//! Text that somebody else chose, made fit for a terminal.
//!
//! Owns: what of it is shown. Never: changes a name that is sent anywhere.

/// The longest name has 256 bytes; what is longer is no name of ours.
const CHARACTERS_MAX: usize = 1_024;

/// `text` without anything that a terminal would take for a command, or that would show it in another order: each such
/// character is shown as `�`.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .take(CHARACTERS_MAX)
        .map(|character| if is_plain(character) { character } else { '�' })
        .collect()
}

fn is_plain(character: char) -> bool {
    // Controls of both kinds, marks of direction, and what has no width and so could hide in a name.
    let is_marking = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    !character.is_control() && !is_marking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_or_change_of_direction_comes_through() {
        assert_eq!(clean("a\u{1b}]0;title\u{7}b"), "a�]0;title�b");
        assert_eq!(clean("a\u{9b}2Jb\r\n\u{7f}"), "a�2Jb���");
        assert_eq!(clean("nightly\u{202e}gpj.exe\u{200b}"), "nightly�gpj.exe�");
    }

    #[test]
    fn names_in_any_script_stay_as_they_are() {
        for name in ["orders/42", "kunci-é", "鍵/東京", "مفتاح", "🔑"] {
            assert_eq!(clean(name), name);
        }
    }

    #[test]
    fn a_text_without_end_has_one() {
        assert_eq!(clean(&"x".repeat(1 << 20)).len(), CHARACTERS_MAX);
    }
}
