// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of a log in a page: it comes from any program, and must stay text.

use std::fmt::{self, Display, Write};

/// Shown as it is by a browser, wherever in a page it is put.
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaper(f), "{}", self.0)
    }
}

struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.write_str("&amp;")?,
                '<' => self.0.write_str("&lt;")?,
                '>' => self.0.write_str("&gt;")?,
                '"' => self.0.write_str("&quot;")?,
                '\'' => self.0.write_str("&#39;")?,
                c => self.0.write_char(shown(c))?,
            }
        }
        Ok(())
    }
}

/// Neither HTML nor XML has control characters, and those that turn the direction of writing
/// would reach beyond the text.
fn shown(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// The same characters for whoever escapes by itself.
pub fn plain(text: &str) -> String {
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let hostile = "</pre><script a='b' c=\"d\">&\u{1b}[2J\0\u{202e}x\ny";
        assert_eq!(
            Escaped(hostile).to_string(),
            "&lt;/pre&gt;&lt;script a=&#39;b&#39; c=&quot;d&quot;&gt;&amp;\u{fffd}[2J\u{fffd}\u{fffd}x\ny"
        );
    }
}
