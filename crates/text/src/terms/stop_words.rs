//! Function words, which say nothing about a text's topic.

use crate::word_list::WordTable;

/// English function words. Function words that are also code keywords (`if`, `for`, `not`, `all`,
/// `after`, …) are left out, because they carry meaning in notes about programs.
const ENGLISH: &str = "\
    a about again against am an and are as at be because been being between both but by could \
    did do does doing during few from further had has have having he her here hers herself him \
    himself his how i is it its itself just let me more most my myself nor of or our ours \
    ourselves s she should so some such t than that the their theirs them themselves then \
    there these they this those through to too very was we were what when where which who whom \
    why will would you";

/// Words of confirmation, thanks or continuation.
const SMALL_TALK: [&str; 22] = [
    "again", "ahead", "continue", "fine", "go", "good", "great", "look", "looks", "next", "no",
    "ok", "okay", "please", "proceed", "same", "step", "sure", "thanks", "try", "yeah", "yes",
];

/// Returns whether a folded word is one of confirmation, thanks or continuation.
pub fn is_small_talk(word: &str) -> bool {
    SMALL_TALK.binary_search(&word).is_ok()
}

/// Function words of German, French, Spanish, Portuguese, Italian, Dutch, Russian, Polish, Swedish
/// and Turkish, folded. Words that mean something in English texts about programs are left out
/// (`comment`, `var`, `pod`).
const OTHERS: &str = "\
    aan aber agli al albo ale alla alle als ama anche ao aos ar att au auch auf aunque aus aux \
    av avec bara bardzo bei beim bez bij bir bis bist blev bli bunu byc był była było ce ces \
    cet cette che chi cok com como con contra cual cuando cui czy da daha dai dal dalla damit \
    dan dann dans dar das dass dat de debe debo degil degli dei del dela dele della delle dem \
    den denn der des desde det detta deve deze di dich die dies diese diesem diesen dieser \
    dieses din dit diye dla dlaczego doch doen doit donc donde dove du durch dus ed een efter \
    ein eine einem einen einer eines ej el ela ele eles ella elle eller elles ellos em en \
    entre er era eres esa ese eso essa esse est esta estan estao este esto estos et ete etre \
    ett eu euch fait faut foi foram fran fue fur gdy gdzie geen gegen gibi gli gor ha haar \
    haben hade han hanno hasta hat hatte hay heb hebben heeft hemos het hier hij ho hoe hon \
    honom hun hur ich icin ihm ihn ihr ihre ik il ile ils im ingen inte ise isso ist isto ja \
    jag jak jaka jaki jakie jako je jede jeder jego jej jesli jeszcze jij jullie juz kadar kan \
    kann kein keine kiedy kommer konnen kto ktora ktore ktory kunnen la las le lei les leur \
    leurs lhe lo loro los lui ma maar mais mamy med meer mehr mein meme mes mesmo met meu mi \
    mich mig mij mijn minha mio mir mis mit moet moeten moi mon mot moze muito muss muy mycket \
    na naar nach nada nagot nao nar nasıl ne neden negli nei nel nella nem nerede ni nicht nie \
    niet niz noch nog noi non nosotros nossa nosso nostro notre nous nu numa nun nur o och \
    oder ohne olan olarak olur om ona onde onder oni ons ont onu onze ook oss otra otro ou pa \
    par para pas pela pelo perche pero peut piu poco pode poniewaz por porque posso pour \
    pourquoi przed przez przy puede puedo puo qu quais qual quale quali quand quando que quel \
    quelle quelles quello quels quem questa questi questo qui quien sa sans sao se sea sedan \
    sehr sein sem ser seu si sia sich sie sig sin sind ska sobre soll sollen som son sono sont \
    stato su sua suas sue sui sul sulla suo suoi sur sus ta tak takze tam tambem tambien tan \
    te tegen tego tej tem temos tes tez tiene toch toda todas todos toen toi tous tout toute \
    toutes tra tu tylko uber uit um uma umas un una und une uno unos uns unser unter utan vad \
    van vara varfor veel veya vilka vilken voce voces voi vom von voor vor vos votre vous waar \
    waarom wanneer war waren warum wat weil wel welke wenn wer werd werden wie wiec wieso wij \
    wir wird wo worden wordt wurde wurden ya yo zal ze zeby zich zij zijn zo zonder zou zu zum \
    zur zwischen а без более бы был была были было быть в вам вас весь во вот все всего вы где \
    да для до его ее если есть еще же за здесь и из или им их к как какая какие какои когда \
    кто ли мне можно мои мы на над надо нам нас наш нашего не него нет ни но ну о об он она \
    они оно от очень по под почему при про с сам свои себя со так также такои там те тем то \
    того тоже тои только том тут ты у уже хотя чего чем что чтобы эта эти это этого этои этом \
    этот я";

static WORDS: WordTable<(), 724, 2048> =
    WordTable::EMPTY
        .with(ENGLISH, b' ', ())
        .with(OTHERS, b' ', ());

/// Returns whether a folded word is a function word.
pub(super) fn is_stop_word(folded: &str) -> bool {
    WORDS.get(folded).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_of_many_languages_are_found() {
        for word in [
            "the",
            "they",
            "uber",
            "pourquoi",
            "tambien",
            "nao",
            "perche",
            "чтобы",
        ] {
            assert!(is_stop_word(word), "{word}");
        }
        for word in ["if", "for", "not", "man", "comment", "deploy", "база"] {
            assert!(!is_stop_word(word), "{word}");
        }
    }
}
