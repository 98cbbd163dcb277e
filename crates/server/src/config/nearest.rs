//! The name that was probably meant.

/// More differences than this, and it isn't the same word mistyped.
const DIFFERENCES_MAX: usize = 3;

/// The name in `known` that `found` is most like, if any is like it.
pub(super) fn nearest<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // People write a flag's hyphens into the file.
    let found = found.replace('-', "_").to_lowercase();
    let near = known.map(|name| (differences(&found, name), name));
    let near = near.filter(|(differences, name)| *differences <= DIFFERENCES_MAX.min(name.len() / 2));
    near.min().map(|(_, name)| name)
}

/// How many characters to add, drop or change to get from one word to the other.
fn differences(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, left) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, right) in to.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_recognised_and_a_strange_one_is_not() {
        let known = ["data", "http", "log_format"];
        let nearest = |found| nearest(found, known.into_iter());

        assert_eq!(nearest("htpp"), Some("http"));
        assert_eq!(nearest("log-format"), Some("log_format"));
        assert_eq!(nearest("Data"), Some("data"));
        assert_eq!(nearest("database_url"), None);
        assert_eq!(nearest("x"), None);
    }
}
