//! Tells which sentences of a person matter beyond the step they were said for.
//!
//! The rules are phrases, in the six languages of [`crate::summary::next_steps`]. A phrase that is
//! about this one step ("don't run it yet") or that reports ("it never works") gives no directive:
//! a wrong instruction in a note costs more than a missing one.

use serde::{Deserialize, Serialize};

use crate::{
    phrases::{Words, is_dense, length, sum_of_marks},
    prose::is_small_talk,
};

/// What a lasting sentence does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directive {
    /// It holds in general: "never push to main".
    Rule,
    /// It says that something was wrong, and often what is right: "no, use pnpm".
    Correction,
    /// It says how a person or a team does things: "we use pnpm".
    Preference,
}

/// Words that make a sentence general.
const GENERAL: &str = "\
    never|always|from now on|going forward|next time|every time|each time|in the future|\
    in future|as a rule|at all times|whenever|must|mustn't|under no circumstances|no longer|\
    not anymore|ever again|ever|必须|永远|总是|以后|一律|绝不|从现在开始|从今以后|不再|必ず|常に|今後|決して|絶対に|nunca|\
    siempre|a partir de ahora|de ahora en adelante|debe|ya no|jamais|toujours|désormais|\
    dorénavant|à partir de maintenant|doit|niemals|nie|immer|ab jetzt|künftig|in zukunft|\
    muss";

/// Beginnings that forbid.
const FORBIDDING: &str = "\
    don't|dont|do not|please don't|please dont|please do not|never|avoid|stop|we don't|\
    we dont|we do not|you shouldn't|you should not|we never|and don't|but don't|no more|\
    also don't|without|不要|别|请不要|no uses|no hagas|no usamos|ne pas|n'utilise pas|on n'|kein|\
    keine|nicht|bitte nicht|wir verwenden kein";

/// Phrases that set one thing against another.
const CONTRAST: &str = "\
    instead|instead of|rather than|only|just use|unless|but not|not just|except|而不是|只|仅|\
    代わりに|だけ|ではなく|en lugar de|en vez de|solo|sólo|au lieu de|plutôt que|seulement|statt|\
    anstatt|stattdessen|nur";

/// Phrases of negation.
const NEGATION: &str = "\
    don't|dont|do not|doesn't|doesnt|does not|shouldn't|shouldnt|should not|can't|cannot|\
    stop|without|avoid|won't|wouldn't|not|didn't|didnt|isn't|isnt|不要|不是|不需要|别|不能|しないで|ない|\
    sin|pas de|ne pas|sans|nicht|kein|keine|ohne";

/// Phrases that say that something was wrong.
const WRONG: &str = "\
    wrong|incorrect|not correct|not right|left out|you forgot|you missed|why did you|\
    why didn't you|why didnt you|why aren't you|why arent you|i asked you|i only wanted|\
    i meant|you should have|that's not|thats not|that is not|not what i|did you even|\
    you didn't|you didnt|my mistake|不对|错了|不是的|我的意思是|違う|間違|incorrecto|está mal|quería decir|\
    c'est faux|erreur|je voulais dire|falsch|ich meinte";

/// Beginnings that contradict.
const CONTRADICTING: &str = "\
    no|nope|nah|wait|stop|actually|but|hmm|nein|non|mais|aber|pero|不|不是|いいえ|でも|wrong|\
    incorrect|rather|doch|sondern";

/// Phrases that say how things are done here.
const PREFERENCE: &str = "\
    prefer|i'd rather|i'd like|i would like|i want|we want|i like|let's|lets|we use|we rely|\
    we have|we're using|we are using|we keep|our|use|should|needs to|need to|has to|have to|\
    make sure|be sure|ensure|remember|remind|keep in mind|note that|important|supposed to|\
    mention|应该|希望|我想|请用|使用|我们用|ほしい|使って|べき|prefiero|quiero|usamos|je préfère|je veux|\
    on utilise|il faut|ich möchte|wir verwenden";

/// Phrases of [`PREFERENCE`] that hold beyond one step by themselves.
const LASTING: &str = "\
    prefer|i'd rather|we use|we rely|we're using|we are using|we keep|remember that|\
    remember to|keep in mind|note that|make sure|supposed to|i like|has to be|have to be|\
    needs to be|should be|should use|我希望|我们用|应该|ほしい|べき|prefiero|usamos|je préfère|\
    on utilise|wir verwenden|wir nutzen";

/// Phrases of [`LASTING`] that say how a person or a team does things, whatever the step is.
const HABIT: &str = "\
    prefer|i'd rather|we use|we rely|we're using|we are using|we never|we don't use|we dont use|\
    we do not use|remember that|remember to|keep in mind|我们用|我们使用|使っています|prefiero|usamos|je préfère|on utilise|\
    nous utilisons|wir verwenden|wir nutzen|wir benutzen|ich bevorzuge";

/// The longest sentence that is taken for a rule or a habit, in characters. A longer one describes.
const MAX_LASTING: usize = 200;

/// Phrases that give a reason.
const REASON: &str = "\
    because|since|so that|the reason|due to|that's why|thats why|in order to|the issue was|\
    the issue is|the problem is|the problem was|turns out|as we|otherwise|因为|所以|由于|から|ため|\
    porque|para que|parce que|afin de|weil|damit|da wir|denn";

/// Phrases that settle something.
const SETTLING: &str = "\
    going with|go with|option|i'm going to|im going to|i'll|i will|we'll|we will|\
    i went ahead|decided|rename|move|remove|merge|replace|split|fold|add|put|create|change|\
    update|keep|drop|switch|directly|i allow|改成|去掉|删除|改为|显示|変更";

/// Phrases about this one step.
const THIS_STEP: &str = "\
    yet|for now|right now|this time|just this once|for this commit|for a second|\
    for a moment|for the moment|until i|until we|before i|at this point|today|in this pr|\
    in this commit|this one time|anything else|any further|bother|暂时|现在先|还没|先别|今は|まだ|とりあえず|\
    todavía|por ahora|aún no|de momento|pas encore|pour l'instant|pour le moment|noch nicht|\
    vorerst|fürs erste|erst mal|erstmal|diesmal|im moment|just now";

/// Phrases that report what happens instead of saying what should.
const REPORTING: &str = "\
    it never|it always|it only|this never|this always|that never|that always|which never|\
    which always|never works|never worked|always fails|always failed|i never|i have never|\
    i've never|never heard|never seen|i always|it must be|must be because|must have been|\
    must be the|there must be|have you ever|ever since";

/// Beginnings of requests that end with a question mark.
const REQUESTING: &str = "\
    can we|can you|could we|could you|shall we|should we|would you|will you";

/// Returns what a sentence of a person says beyond this one step, if it does.
pub fn directive(sentence: &str) -> Option<Directive> {
    directive_in(sentence, &Words::new(sentence))
}

fn directive_in(sentence: &str, words: &Words) -> Option<Directive> {
    if is_small_talk(sentence) || is_too_short(sentence, words) || is_question(sentence) {
        return None;
    }
    if words.contain(THIS_STEP) || words.contain(REPORTING) {
        return None;
    }
    if words.contain(GENERAL) || words.begin(FORBIDDING) {
        return Some(Directive::Rule);
    }
    let is_opposed = words.contain(CONTRAST) || words.contain(NEGATION);
    if words.contain(WRONG) || (words.begin(CONTRADICTING) && is_opposed) {
        return Some(Directive::Correction);
    }
    let is_preferred = words.contain(PREFERENCE);
    if is_preferred && is_opposed {
        return Some(Directive::Correction);
    }
    (words.contain(LASTING) || words.begin("use|please use|verwende|utilise|usa"))
        .then_some(Directive::Preference)
}

/// Returns whether a sentence states a rule in a general form: "never …", "from now on …".
pub fn is_general_rule(sentence: &str) -> bool {
    directive(sentence) == Some(Directive::Rule) && Words::new(sentence).contain(GENERAL)
}

/// Returns whether a sentence holds beyond its session by its own words: a general rule, a habit, or
/// what to use instead of something else.
///
/// Stricter than [`directive`], which also takes corrections of this session's work.
pub fn sounds_lasting(sentence: &str) -> bool {
    if sentence.chars().count() > MAX_LASTING {
        return false;
    }
    let words = Words::new(sentence);
    let chooses = || words.begin("use|please use|no use|no please use") && words.contain(CONTRAST);
    (words.contain(GENERAL) || words.contain(HABIT) || chooses())
        && directive_in(sentence, &words).is_some()
}

/// Returns how much a sentence of a person tells a later session; 0 or less is nothing.
pub(crate) fn weight(sentence: &str) -> f32 {
    if is_small_talk(sentence) {
        return 0.0;
    }
    let words = Words::new(sentence);
    let marks = [
        (words.contain(GENERAL), 4.0),
        (words.contain(NEGATION), 2.0),
        (words.contain(CONTRAST), 2.0),
        (words.contain(WRONG), 2.0),
        (words.begin(CONTRADICTING), 1.5),
        (words.contain(PREFERENCE), 1.5),
        (words.contain(REASON), 1.5),
        (words.contain(SETTLING), 0.7),
    ];
    let lasting = match directive_in(sentence, &words) {
        Some(Directive::Rule | Directive::Correction) => 2.0,
        Some(Directive::Preference) => 1.0,
        None => 0.0,
    };
    let asks = is_question(sentence) && !words.begin(REQUESTING);
    sum_of_marks(&marks) + lasting + (0.7 * specifics(sentence)).min(2.0)
        - if asks { 1.0 } else { 0.0 }
        - length(sentence) / 300.0
}

/// Counts what can be looked up: names of files and of code, options, quoted terms, numbers.
pub(crate) fn specifics(sentence: &str) -> f32 {
    let quoted = sentence.matches(['`', '"']).count() / 2;
    let words = sentence.split_whitespace().map(|word| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && !"@#-_/.".contains(c))
            .trim_end_matches(['.', ',', ':'])
    });
    let named = words.filter(|word| is_specific(word)).count();
    f32::from(u8::try_from(quoted.max(named)).unwrap_or(u8::MAX))
}

fn is_specific(word: &str) -> bool {
    let count = |is: fn(char) -> bool| word.chars().filter(|c| is(*c)).count();
    let pairs = || word.chars().zip(word.chars().skip(1));
    let extension = word.rsplit_once('.').map(|(name, end)| (name.len(), end));
    word.starts_with('@') && word.len() > 2
        || word.starts_with("--") && word.len() > 3
        || word.starts_with('#') && count(|c| c.is_ascii_digit()) > 0
        || word.contains(['_', '/']) && word.len() > 3 && count(char::is_alphabetic) > 1
        || extension.is_some_and(|(name, end)| {
            name > 0 && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphabetic)
        })
        || pairs().any(|(one, next)| one.is_lowercase() && next.is_uppercase())
        || word.len() >= 3
            && (count(char::is_uppercase) == word.len() || count(|c| c.is_ascii_digit()) >= 3)
}

pub(crate) fn is_question(sentence: &str) -> bool {
    sentence
        .trim_end_matches(['"', ')', '*', ' '])
        .ends_with(['?', '？'])
}

/// Returns whether a sentence is too short to be understood alone.
fn is_too_short(sentence: &str, words: &Words) -> bool {
    if is_dense(sentence) {
        sentence.chars().count() < 4
    } else {
        words.iter().count() < 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_by_its_own_words_sounds_lasting() {
        for sentence in [
            "Never push to main without a review.",
            "we use pnpm for everything",
            "no, use pnpm instead of npm",
            "remember that the tests need the stub server",
            "ab jetzt bitte immer mit pnpm bauen",
            "以后不要提交生成的文件",
        ] {
            assert!(sounds_lasting(sentence), "{sentence}");
        }
        for sentence in [
            "that's not correct, the command uses the main workspace",
            "make sure the readme is up to date",
            "you left out the front matter",
            "don't run it yet",
            "do we always deploy on Fridays?",
            "Use your personal access token",
        ] {
            assert!(!sounds_lasting(sentence), "{sentence}");
        }
    }

    #[test]
    fn lasting_sentences() {
        use Directive::{Correction, Preference, Rule};
        for (sentence, expected) in [
            ("Never push to main without a review.", Rule),
            ("from now on, run the linter before you commit", Rule),
            (
                "you must use `make deploy-staging`, deploy.sh is for production only!",
                Rule,
            ),
            ("We never add dependencies here", Rule),
            ("don't commit generated files", Rule),
            ("we dont want to use that directory format ever", Rule),
            ("no, use pnpm instead of npm", Correction),
            (
                "that's not correct, the command uses the main workspace",
                Correction,
            ),
            ("we rely on task-master, not in a file", Correction),
            ("I prefer short commit messages", Preference),
            ("we use pnpm for everything", Preference),
            ("Use uv pip", Preference),
            ("nunca subas a main sin revisión", Rule),
            ("ab jetzt bitte immer mit pnpm bauen", Rule),
            ("désormais on lance les tests avant", Rule),
            ("以后不要提交生成的文件", Rule),
            ("コミットの前に必ずテストを実行して", Rule),
            ("我希望是英文的，且意思明确", Preference),
        ] {
            assert_eq!(directive(sentence), Some(expected), "{sentence}");
        }
    }

    #[test]
    fn what_is_said_for_one_step_or_reported_is_not_lasting() {
        for sentence in [
            "don't run it yet",
            "not right now, I have to check something first",
            "it never works on my machine",
            "the build always fails with this error",
            "should we use pnpm?",
            "have you ever seen this?",
            "fix the parser",
            "thanks, that works",
            "no",
            "noch nicht pushen",
            "先别提交",
            "todavía no lo subas",
        ] {
            assert_eq!(directive(sentence), None, "{sentence}");
        }
    }

    #[test]
    fn specific_words() {
        for (sentence, count) in [
            ("use `make deploy-staging` now", 1.0),
            ("look at @src/a.rs and #12", 2.0),
            ("getUserID with --all in config.json", 3.0),
            ("nothing in here", 0.0),
        ] {
            assert!((specifics(sentence) - count).abs() < 0.1, "{sentence}");
        }
        assert!(weight("don't use npm, always use `pnpm`") > weight("what is it?"));
        assert!(weight("ok thanks") <= 0.0);
    }
}
