//! The definition of a rule.

use super::scan::Scan;
use super::tokens::Token;

/// A kind of credential and its patterns.
pub(super) struct Rule {
    /// Its name in findings and in the documentation.
    pub(super) name: &'static str,
    pub(super) finder: Finder,
}

/// How a rule finds its credentials.
pub(super) enum Finder {
    /// Tokens with a distinctive prefix each.
    Tokens(&'static [Token]),
    /// A function that is called at each anchor.
    Scanner {
        anchors: &'static [Literal],
        find: fn(&mut Scan<'_>, usize),
    },
}

/// The literal text of an anchor, at least two ASCII bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Literal {
    Exact(&'static str),
    AnyCase(&'static str),
}

impl Literal {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Exact(text) | Self::AnyCase(text) => text,
        }
    }

    pub(super) fn matches_at(self, text: &[u8], at: usize) -> bool {
        let literal = self.text().as_bytes();
        let Some(there) = text.get(at..at + literal.len()) else {
            return false;
        };
        match self {
            Self::Exact(_) => there == literal,
            Self::AnyCase(_) => there.eq_ignore_ascii_case(literal),
        }
    }
}

impl Rule {
    /// Returns the literals without which the rule cannot match.
    pub(super) fn literals(&self) -> impl Iterator<Item = Literal> {
        let (tokens, anchors): (&[Token], &[Literal]) = match self.finder {
            Finder::Tokens(tokens) => (tokens, &[]),
            Finder::Scanner { anchors, .. } => (&[], anchors),
        };
        tokens
            .iter()
            .map(|token| Literal::Exact(token.mark))
            .chain(anchors.iter().copied())
    }
}

pub(super) const fn exact(text: &'static str) -> Literal {
    Literal::Exact(text)
}

pub(super) const fn any_case(text: &'static str) -> Literal {
    Literal::AnyCase(text)
}
