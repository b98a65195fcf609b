//! Recognises sentences whose content is void soon: one-time codes and addresses of tunnels.

use crate::phrases::Words;

/// Domains of tunnels to a developer's machine.
const TUNNELS: [&str; 9] = [
    ".trycloudflare.com",
    ".ngrok.io",
    ".ngrok.app",
    ".ngrok-free.",
    ".loca.lt",
    ".lhr.life",
    ".serveo.net",
    ".localhost.run",
    ".devtunnels.ms",
];

/// Words beside a one-time code.
const CODE: &str = "\
    code|codes|passcode|pin|otp|2fa|verification|验证码|コード|código|kode";

/// Returns whether a sentence names a one-time code or a temporary address.
pub(super) fn is_expiring(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    if TUNNELS.iter().any(|tunnel| lower.contains(tunnel)) {
        return true;
    }
    let mut words = sentence.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.any(is_one_time_code) && Words::new(sentence).contain(CODE)
}

/// Returns whether a word has the form of a one-time code: `1A2B-3C4D`, `123456`.
fn is_one_time_code(word: &str) -> bool {
    let is_upper = |part: &str| {
        part.len() == 4
            && part
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    let is_pair = word
        .split_once('-')
        .is_some_and(|(one, two)| is_upper(one) && is_upper(two));
    is_pair || word.len() == 6 && word.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_tunnels_expire() {
        for (sentence, expected) in [
            ("Enter the code 1A2B-3C4D at the address above.", true),
            ("your verification code is 123456", true),
            ("It runs at https://calm-sea-1.trycloudflare.com now.", true),
            ("The exit code is 101.", false),
            ("Order 123456 has no address.", false),
            ("UTF-8 and the ISO-8859 code pages", false),
        ] {
            assert_eq!(is_expiring(sentence), expected, "{sentence}");
        }
    }
}
