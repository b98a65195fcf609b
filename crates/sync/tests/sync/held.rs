//! What is not done before the person has said so: a history that was rewritten, many notes gone.

use anamnesis_note::note::{NoteType, Scope, State};
use anamnesis_store::notes::NotePath;
use anamnesis_sync::{Held, HeldDecision};

use crate::fleet::{Fleet, Machine};

/// Titles `note 0` and so on.
fn titles(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("note {number}")).collect()
}

fn pair(fleet: &Fleet, count: usize) -> (Machine, Machine, Vec<NotePath>) {
    let titles = titles(count);
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    fleet.pair(&titles)
}

/// Both have the same, and nothing more happens.
fn assert_in_step(fleet: &Fleet, machines: &[&Machine]) {
    for machine in machines {
        let synced = machine.sync();
        assert_eq!(synced.held, None, "{}: {synced:?}", machine.name);
        assert!(synced.pushed);
    }
    for machine in machines {
        machine.sync();
    }
    for machine in machines {
        assert_eq!(machine.tree(), machines[0].tree(), "{}", machine.name);
        assert_eq!(machine.git(&["rev-parse", "main"]), fleet.tip());
        assert_eq!(machine.git(&["status", "--porcelain"]), "");
        let tip = fleet.tip();
        assert_eq!(machine.sync().pulled, 0);
        assert_eq!(fleet.tip(), tip, "a sync of nothing makes a commit");
    }
}

/// A remote with one commit that has half of the notes and one that is new, no history, and machines
/// that have work of their own.
fn rewritten(fleet: &Fleet) -> (Machine, Machine, Vec<NotePath>) {
    let (laptop, desktop, paths) = pair(fleet, 4);
    let stranger = fleet.stranger();
    let mut tree = stranger.put_note(stranger.tree(), "theirs");
    for path in &paths[..2] {
        tree = stranger.without(tree, &format!("semantic/{}.md", path.id));
    }
    stranger.rewrite(tree);
    laptop.write("laptop's");
    laptop.edit(paths[0], |note| "edited".clone_into(&mut note.title));
    (laptop, desktop, paths)
}

#[test]
fn a_rewritten_history_is_held() {
    // GIT-06
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = rewritten(&fleet);
    let tip = fleet.tip();
    for _ in 0..2 {
        let synced = laptop.sync();
        assert_eq!(synced.held, Some(Held::Rewritten));
        assert!(!synced.pushed);
        assert_eq!(synced.changed, []);
    }
    // Local notes are committed and stay; the remote is unchanged.
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("edited"));
    assert_eq!(laptop.notes.list().notes.len(), 5);
    assert_eq!(laptop.git(&["status", "--porcelain"]), "");
    assert_eq!(fleet.tip(), tip);
    let written = laptop.write("written while it is held");
    laptop.sync();
    assert!(
        laptop
            .git(&["ls-tree", "-r", "main"])
            .contains(&written.id.to_string())
    );
    assert_eq!(desktop.sync().held, Some(Held::Rewritten));
    assert_eq!(desktop.notes.list().notes.len(), 4);
}

#[test]
fn a_rewritten_history_is_undone() {
    // GIT-06
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = rewritten(&fleet);
    laptop.sync();
    desktop.sync();
    let restored = laptop.answer(HeldDecision::Restore);
    assert_eq!(restored.held, None);
    assert!(restored.pushed, "{restored:?}");
    assert_in_step(&fleet, &[&laptop, &desktop]);
    let all = ["edited", "laptop's", "note 1", "note 2", "note 3", "theirs"];
    assert_eq!(laptop.titles(), all);
    assert_eq!(desktop.title(paths[0].id).as_deref(), Some("edited"));
}

#[test]
fn a_rewritten_history_is_accepted() {
    // GIT-06
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = rewritten(&fleet);
    laptop.sync();
    let accepted = laptop.answer(HeldDecision::Accept);
    assert_eq!(accepted.held, None);
    assert!(accepted.pushed, "{accepted:?}");
    // Unpushed commits are not part of the rewritten history.
    assert_eq!(laptop.titles(), ["laptop's", "note 2", "note 3", "theirs"]);
    // The edit of a removed note is kept on this machine.
    let kept = laptop
        .notes
        .list_scope(anamnesis_note::note::Scope::MachineLocal);
    assert_eq!(kept.notes.len(), 1);
    // The branch no longer has the old history.
    let log = laptop.git(&["log", "--format=%s", "--reverse"]);
    assert!(log.starts_with("work\n"), "{log}");
    assert_eq!(desktop.answer(HeldDecision::Accept).held, None);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(desktop.notes.find(paths[0].id), None);
}

#[test]
fn a_remote_that_was_set_back_gets_everything_again() {
    // GIT-06: for example, a restored backup.
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 2);
    let stranger = fleet.stranger();
    let old = stranger.git.refname_to_id("refs/heads/main").unwrap();
    laptop.edit(paths[0], |note| "edited".clone_into(&mut note.title));
    laptop.write("later");
    laptop.sync();
    desktop.sync();
    stranger
        .git
        .reference("refs/heads/main", old, true, "")
        .unwrap();
    desktop.write("desktop's");
    assert_in_step(&fleet, &[&desktop, &laptop]);
    assert_eq!(laptop.titles(), ["desktop's", "edited", "later", "note 1"]);
}

#[test]
fn a_set_back_and_built_upon_remote_loses_nothing() {
    // GIT-06
    let fleet = Fleet::new();
    let (laptop, desktop, _) = pair(&fleet, 2);
    let stranger = fleet.stranger();
    let old = stranger.git.refname_to_id("refs/heads/main").unwrap();
    laptop.write("later");
    laptop.sync();
    desktop.sync();
    stranger
        .git
        .reference("refs/heads/main", old, true, "")
        .unwrap();
    stranger.push(stranger.put_note(stranger.tree(), "theirs"));
    assert_eq!(laptop.sync().held, Some(Held::Rewritten));
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&desktop, &laptop]);
    assert_eq!(desktop.titles(), ["later", "note 0", "note 1", "theirs"]);
}

/// Takes notes out of the remote's branch by a commit of a stranger.
fn delete_there(fleet: &Fleet, paths: &[NotePath]) {
    let stranger = fleet.stranger();
    let mut tree = stranger.put_note(stranger.tree(), "theirs");
    for path in paths {
        tree = stranger.without(tree, &format!("semantic/{}.md", path.id));
    }
    stranger.push(tree);
}

#[test]
fn a_few_deleted_notes_are_deleted() {
    // GIT-07: a mass deletion is more than five notes, or all of a project with several.
    for (gone, of) in [(5, 30), (1, 1)] {
        let fleet = Fleet::new();
        let (laptop, desktop, paths) = pair(&fleet, of);
        delete_there(&fleet, &paths[..gone]);
        assert_eq!(laptop.sync().held, None, "{gone} of {of}");
        assert_in_step(&fleet, &[&laptop, &desktop]);
        assert_eq!(laptop.titles().len(), of - gone + 1);
    }
}

#[test]
fn six_deleted_notes_of_many_are_held() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 105);
    delete_there(&fleet, &paths[..6]);
    assert_eq!(
        laptop.sync().held,
        Some(Held::MassDeletion { gone: 6, of: 105 })
    );
    assert_eq!(laptop.titles().len(), 105);
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(laptop.titles().len(), 106);
}

#[test]
fn all_notes_of_a_project_are_held() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 9);
    for path in &paths[..3] {
        laptop.edit(*path, |note| "cart".clone_into(&mut note.project));
    }
    laptop.sync();
    desktop.sync();
    // Two of the three may go, …
    laptop.remove(&paths[..2]);
    assert_eq!(laptop.sync().held, None);
    laptop.edit(paths[3], |note| "cart".clone_into(&mut note.project));
    laptop.sync();
    desktop.sync();
    assert_eq!(desktop.titles().len(), 7);
    // … but not all that are left.
    laptop.remove(&paths[2..4]);
    let held = Some(Held::LocalMassDeletion { gone: 2, of: 7 });
    assert_eq!(laptop.sync().held, held);
    desktop.sync();
    assert_eq!(desktop.titles().len(), 7);
    laptop.answer(HeldDecision::Accept);
    assert_eq!(
        desktop.sync().held,
        Some(Held::MassDeletion { gone: 2, of: 7 })
    );
    assert_eq!(desktop.titles().len(), 7);
    // With another note of the project in the same change, nothing is held.
    desktop.answer(HeldDecision::Restore);
    desktop.remove(&paths[2..4]);
    desktop.edit(paths[4], |note| "cart".clone_into(&mut note.project));
    assert_eq!(desktop.sync().held, None);
}

#[test]
fn notes_that_the_remote_deleted_are_counted_before_a_join() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 9);
    assert_eq!(laptop.init().unwrap().deleted_there, 0);
    let lock = desktop.notes.lock().unwrap();
    for path in &paths[..2] {
        desktop.notes.forget(&lock, *path, desktop.now).unwrap();
    }
    drop(lock);
    desktop.remove(&paths[2..3]);
    desktop.sync();
    laptop.remove(&paths[..1]);
    laptop.write("laptop's");
    let reached = laptop.init().unwrap();
    assert_eq!((reached.deleted_there, reached.notes_here), (2, 9));
    laptop.answer(HeldDecision::KeepAll);
    assert_eq!(laptop.titles().len(), 10);
}

#[test]
fn many_deleted_notes_are_held() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    delete_there(&fleet, &paths[..21]);
    laptop.edit(paths[0], |note| "edited".clone_into(&mut note.title));
    let tip = fleet.tip();
    let mass = Some(Held::MassDeletion { gone: 21, of: 30 });
    for machine in [&laptop, &desktop, &laptop] {
        let synced = machine.sync();
        assert_eq!(synced.held, mass);
        assert_eq!((synced.pushed, synced.changed.len()), (false, 0));
        assert_eq!(machine.titles().len(), 30);
    }
    assert_eq!(fleet.tip(), tip);
    // A new machine has no notes to lose.
    let fresh = fleet.machine("fresh");
    fresh.sync();
    assert_eq!(fresh.titles().len(), 10);

    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop, &fresh]);
    assert_eq!(desktop.titles().len(), 31);
    assert_eq!(desktop.title(paths[0].id).as_deref(), Some("edited"));
    for path in &paths[1..] {
        assert!(fresh.notes.find(path.id).is_some());
    }
}

#[test]
fn many_deleted_notes_are_deleted_when_it_is_meant() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    delete_there(&fleet, &paths[..21]);
    let own = laptop.write("laptop's");
    laptop.sync();
    laptop.answer(HeldDecision::Accept);
    assert_eq!(laptop.titles().len(), 11);
    assert_eq!(
        desktop.sync().held,
        Some(Held::MassDeletion { gone: 21, of: 30 })
    );
    desktop.answer(HeldDecision::Accept);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert!(desktop.notes.find(own.id).is_some());
    assert_eq!(desktop.notes.find(paths[0].id), None);
}

#[test]
fn many_tombstones_are_a_mass_deletion() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    let lock = desktop.notes.lock().unwrap();
    for path in &paths[..25] {
        desktop.notes.forget(&lock, *path, desktop.now).unwrap();
    }
    drop(lock);
    desktop.sync();
    assert_eq!(
        laptop.sync().held,
        Some(Held::MassDeletion { gone: 25, of: 30 })
    );
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("note 0"));
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(desktop.title(paths[0].id).as_deref(), Some("note 0"));
}

#[test]
fn emptying_every_note_is_held_like_a_deletion() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    for path in &paths {
        laptop.edit(*path, |note| note.body = "words".to_owned());
    }
    laptop.sync();
    desktop.sync();
    for path in &paths[..25] {
        desktop.edit(*path, |note| note.body = " \n".to_owned());
    }
    desktop.sync();
    let body = |machine: &Machine, path| machine.notes.read(path).unwrap().note().body;
    for _ in 0..2 {
        let synced = laptop.sync();
        assert_eq!(synced.held, Some(Held::MassDeletion { gone: 25, of: 30 }));
        assert_eq!(body(&laptop, paths[0]), "words");
    }
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(body(&desktop, paths[0]), "words");
    // The same, on purpose, and notes that had no text before.
    for path in &paths[..25] {
        desktop.edit(*path, |note| note.body = String::new());
    }
    desktop.sync();
    laptop.answer(HeldDecision::Accept);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(body(&laptop, paths[0]), "");
    for path in &paths[..25] {
        desktop.edit(*path, |note| note.title.push('!'));
    }
    desktop.sync();
    assert_eq!(laptop.sync().held, None);
}

#[test]
fn replacing_every_text_by_a_mark_is_held_like_a_deletion() {
    // GIT-07
    for mark in [".", "---\n", "\u{2026} *"] {
        let fleet = Fleet::new();
        let (laptop, desktop, paths) = pair(&fleet, 10);
        for path in &paths {
            laptop.edit(*path, |note| note.body = "words".to_owned());
        }
        laptop.sync();
        desktop.sync();
        for path in &paths {
            desktop.edit(*path, |note| note.body = mark.to_owned());
        }
        desktop.sync();
        let held = laptop.sync().held;
        assert_eq!(held, Some(Held::MassDeletion { gone: 10, of: 10 }));
        let body = laptop.notes.read(paths[0]).unwrap().note().body;
        assert_eq!(body, "words", "{mark}");
    }
}

#[test]
fn moved_notes_are_not_gone() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    for path in &paths {
        laptop.edit(*path, |note| note.note_type = NoteType::Procedural);
    }
    assert_eq!(laptop.sync().held, None);
    assert_in_step(&fleet, &[&desktop, &laptop]);
    assert_eq!(desktop.titles().len(), 30);
}

#[test]
fn a_folder_that_was_emptied_is_held() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    laptop.remove(&paths[..21]);
    laptop.write("laptop's");
    laptop.edit(paths[29], |note| "edited".clone_into(&mut note.title));
    desktop.write("desktop's");
    desktop.sync();
    // The other notes sync.
    for of in [30, 32] {
        let synced = laptop.sync();
        assert_eq!(synced.held, Some(Held::LocalMassDeletion { gone: 21, of }));
        assert!(synced.pushed, "{synced:?}");
    }
    desktop.sync();
    assert_eq!(desktop.titles().len(), 32);
    assert_eq!(desktop.title(paths[29].id).as_deref(), Some("edited"));
    // A deleted note that is edited elsewhere is not restored before the person decides.
    desktop.edit(paths[0], |note| "edited".clone_into(&mut note.title));
    desktop.sync();
    laptop.sync();

    let restored = laptop.answer(HeldDecision::Restore);
    assert_eq!(restored.held, None, "{restored:?}");
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(laptop.titles().len(), 32);
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("edited"));
}

#[test]
fn a_folder_that_was_emptied_on_purpose_is_empty_everywhere() {
    // GIT-07
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    laptop.remove(&paths[..21]);
    laptop.sync();
    laptop.answer(HeldDecision::Accept);
    assert_eq!(
        desktop.sync().held,
        Some(Held::MassDeletion { gone: 21, of: 30 })
    );
    desktop.answer(HeldDecision::Accept);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(desktop.titles().len(), 9);
}

/// Returns title and state of the notes that are on this machine only.
fn kept(machine: &Machine) -> Vec<(String, State)> {
    let notes = machine.notes.list_scope(Scope::MachineLocal).notes;
    let notes = notes.into_iter().map(|(path, _)| {
        let note = machine.notes.read(path).unwrap().note();
        (note.title, note.state)
    });
    notes.collect()
}

/// A laptop whose folder lost 21 of 30 notes, of which the desktop edits one twice.
fn emptied_and_edited_elsewhere(fleet: &Fleet) -> (Machine, Machine, Vec<NotePath>) {
    let (laptop, desktop, paths) = pair(fleet, 30);
    laptop.remove(&paths[..21]);
    assert!(laptop.sync().held.is_some());
    for title in ["edited", "edited twice"] {
        desktop.edit(paths[0], |note| title.clone_into(&mut note.title));
        desktop.sync();
        laptop.sync();
    }
    (laptop, desktop, paths)
}

#[test]
fn an_accepted_mass_deletion_keeps_the_other_machines_edit_as_a_proposal() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = emptied_and_edited_elsewhere(&fleet);
    laptop.answer(HeldDecision::Accept);
    desktop.answer(HeldDecision::Accept);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(desktop.notes.find(paths[0].id), None);
    assert_eq!(
        kept(&laptop),
        [("edited twice".to_owned(), State::Proposed)]
    );
}

#[test]
fn a_restored_note_leaves_no_proposal_of_its_own_text() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = emptied_and_edited_elsewhere(&fleet);
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("edited twice"));
    assert_eq!(kept(&laptop), []);
}

#[test]
fn restoring_an_emptied_folder_does_not_bring_back_notes_that_were_forgotten_elsewhere() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    laptop.remove(&paths[..21]);
    laptop.sync();
    for path in &paths[27..] {
        desktop.forget(*path);
        desktop.sync();
    }
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    for (machine, path) in [&laptop, &desktop].into_iter().zip(&paths[27..]) {
        assert!(machine.notes.is_forgotten(*path), "{}", machine.name);
    }
    assert_eq!(laptop.title(paths[0].id).as_deref(), Some("note 0"));
}

#[test]
fn restoring_a_mass_deletion_does_not_bring_back_notes_that_were_forgotten_one_by_one() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 40);
    for path in &paths[37..] {
        desktop.forget(*path);
        desktop.sync();
    }
    delete_there(&fleet, &paths[..25]);
    assert!(laptop.sync().held.is_some());
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    for machine in [&laptop, &desktop] {
        assert_eq!(machine.title(paths[0].id).as_deref(), Some("note 0"));
        assert!(machine.notes.is_forgotten(paths[37]), "{}", machine.name);
    }
}

#[test]
fn many_notes_forgotten_one_by_one_can_all_be_restored() {
    let fleet = Fleet::new();
    let (laptop, desktop, paths) = pair(&fleet, 30);
    for path in &paths[..21] {
        desktop.forget(*path);
    }
    desktop.sync();
    assert!(laptop.sync().held.is_some());
    laptop.answer(HeldDecision::Restore);
    assert_in_step(&fleet, &[&laptop, &desktop]);
    for path in &paths[..21] {
        assert!(!desktop.notes.is_forgotten(*path));
    }
}
