//! Words of sentences that say a secret, in several languages: names, and what is between a name and its
//! value.

use super::reading::NAME;
use super::scan::byte;
use super::tokens::BLANK;

/// Names of a password in other languages: German, Spanish, French, Portuguese, Italian, Dutch, Polish,
/// Turkish, Swedish, Russian and Ukrainian, Arabic, Urdu, Hindi, Bengali, Indonesian, Chinese, Japanese,
/// Korean. Marks ignore the case of ASCII only, so other capitals have a spelling of their own.
pub(super) const FOREIGN: &str = "kennwort|contraseña|contraseÑa|contrasena|clave de acceso|mot de passe|mot_de_passe|\
     motdepasse|senha|palavra-passe|parola d'ordine|wachtwoord|hasło|hasŁo|şifre|Şifre|Şİfre|parola|\
     lösenord|lÖsenord|lösenordet|lÖsenordet|пароль|Пароль|ПАРОЛЬ|كلمة المرور|كلمة السر|پاس ورڈ|पासवर्ड|\
     পাসওয়ার্ড|পাসও\u{9df}ার্ড|kata sandi|kata_sandi|密码|密碼|口令|パスワード|비밀번호|암호";

/// Names of a token or key in Chinese, Japanese and Korean.
pub(super) const FOREIGN_SECRETS: &str = "令牌|密钥|密鑰|トークン|토큰";

/// "is" between a name and its value, in the languages of [`FOREIGN`] and in English, where the
/// password may also be set "to" it. Russian has a dash.
#[rustfmt::skip]
const COPULAS: &[&str] = &[
    "is", "was", "to", "ist", "lautet", "es", "era", "est", "é", "É", "è", "È", "jest", "är", "Är", "это", "це", "—",
    "هي", "হল", "হলো", "adalah",
];

/// "is" directly after a name, in languages without blanks between them, or a parenthesis.
const PARTICLES: &[&str] = &["是", "为", "為", "は", "는", "（"];

/// "is" after the value, in Hindi and Urdu.
pub(super) const LAST_WORDS: &[&str] = &["है", "ہے"];

/// Returns the length of the particle at the start of a text, or 0.
pub(super) fn particle(text: &[u8]) -> usize {
    let found = PARTICLES
        .iter()
        .find(|particle| text.starts_with(particle.as_bytes()));
    found.map_or(0, |particle| particle.len())
}

/// Returns the position of the value that a copula at a position precedes: `is x`, `is: x`.
pub(super) fn after_copula(text: &[u8], at: usize) -> Option<usize> {
    COPULAS.iter().find_map(|copula| {
        let end = at + copula.len();
        let is_there = text.get(at..end)?.eq_ignore_ascii_case(copula.as_bytes());
        let end = end + usize::from(byte(text, end) == b':');
        (is_there && BLANK.has(byte(text, end))).then(|| BLANK.run(text, end))
    })
}

/// Returns the position of the value after what a password is for: `password for staging: x`.
pub(super) fn after_purpose(text: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..3 {
        let end = NAME.run_within(text, at, 40);
        if byte(text, end) == b':' && BLANK.has(byte(text, end + 1)) {
            return Some(BLANK.run(text, end + 1));
        }
        at = BLANK.run(text, end);
        if let Some(value) = after_copula(text, at) {
            return Some(value);
        }
    }
    None
}

/// Words after the name of a flag in a sentence.
#[rustfmt::skip]
pub(super) const AFTER_FLAG: &[&str] = &[
    "flag", "flags", "option", "options", "argument", "arguments", "parameter", "switch", "was",
    "to", "if", "in", "when", "instead", "as", "via", "it", "you", "can", "will", "should", "must",
    "may", "your", "that", "which", "without", "at", "by", "of", "only", "also", "does", "has",
    "here", "requires", "needs", "given", "provided", "specified", "both", "then", "but", "before", "after", "would",
];
