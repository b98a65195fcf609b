//! What one machine does, the others have.

use anamnesis_note::note::{NoteType, Scope};

#[cfg(unix)]
use crate::after_push::after_push;
use crate::fleet::Fleet;

#[test]
fn notes_reach_the_other_machine() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    let first = laptop.write("first");
    let second = desktop.write("second");
    let sent = laptop.sync();
    assert!(sent.pushed, "{sent:?}");
    let joined = desktop.sync();
    assert!(joined.pushed && joined.pulled > 0, "{joined:?}");
    assert_eq!(joined.changed, [first]);
    laptop.sync();
    assert_eq!(laptop.title(second.id).as_deref(), Some("second"));
    assert_eq!(laptop.tree(), desktop.tree());
    // git itself reports a clean work tree.
    for machine in [&laptop, &desktop] {
        assert_eq!(machine.git(&["status", "--porcelain"]), "");
        machine.git(&["fsck", "--strict"]);
    }
    let again = laptop.sync();
    assert_eq!((again.pulled, again.detail.as_str()), (0, "synced"));
    assert_eq!(
        laptop.git(&["log", "-1", "--format=%an <%ae>|%cn"]),
        "anamnesis <anamnesis@desktop>|anamnesis\n"
    );
}

#[test]
fn each_step_is_told_when_it_begins() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    laptop.write("first");
    let [commit, fetch, join, push] = [
        "committing the changes of this machine",
        "fetching from the remote",
        "joining with the changes of other machines",
        "pushing to the remote",
    ];
    assert_eq!(laptop.steps(), [commit, fetch, push]);
    desktop.write("second");
    assert_eq!(desktop.steps(), [commit, fetch, join, push]);
}

#[test]
fn a_new_machine_gets_all_notes_without_a_commit() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    laptop.write("first");
    laptop.sync();
    let head = laptop.git(&["rev-parse", "HEAD"]);
    let fresh = fleet.machine("fresh");
    let joined = fresh.sync();
    assert!(joined.pushed);
    assert_eq!(fresh.tree(), laptop.tree());
    assert_eq!(fresh.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn a_note_deleted_or_moved_on_one_machine_follows_on_the_other() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    let goes = laptop.write("goes");
    let moves = laptop.write("moves");
    let hides = laptop.write("hides");
    laptop.sync();
    desktop.sync();
    let lock = desktop.notes.lock().unwrap();
    desktop.notes.remove(&lock, goes).unwrap();
    desktop
        .notes
        .set_scope(&lock, hides, Scope::MachineLocal)
        .unwrap();
    drop(lock);
    let there = desktop.edit(moves, |note| note.note_type = NoteType::Procedural);
    desktop.sync();
    laptop.sync();
    assert_eq!(laptop.notes.find(goes.id), None);
    assert_eq!(laptop.notes.find(hides.id), None);
    assert_eq!(laptop.notes.find(moves.id), Some(there));
    assert_eq!(laptop.tree(), desktop.tree());
    assert_eq!(laptop.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_sparse_checkout_deletes_no_note() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    let left_out = laptop.write("left out");
    laptop.sync();
    laptop.git(&["config", "core.sparseCheckout", "true"]);
    std::fs::remove_file(left_out.absolute(&laptop.home)).unwrap();
    let new = laptop.write("new");
    let error = laptop.try_sync().unwrap_err().to_string();
    assert!(error.contains("core.sparsecheckout"), "{error}");
    let committed = laptop.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    for note in [left_out, new] {
        assert!(committed.contains(&note.id.to_string()), "{committed}");
    }
}

#[test]
fn commits_after_a_killed_sync_stay() {
    // Killed just after it started to write files, and just before its end.
    for applying in ["FETCH_HEAD", "HEAD"] {
        let fleet = Fleet::new();
        let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
        laptop.write("first");
        laptop.sync();
        desktop.sync();
        let second = laptop.write("second");
        laptop.sync();
        desktop.git(&["fetch", "--quiet", &fleet.remote(), "main"]);
        desktop.git(&["update-ref", "refs/anamnesis/applying", applying]);
        let third = desktop.command("third");
        desktop.sync();
        laptop.sync();
        for machine in [&laptop, &desktop] {
            assert_eq!(machine.title(second.id).as_deref(), Some("second"));
            assert_eq!(
                machine.title(third.id).as_deref(),
                Some("third"),
                "{applying}"
            );
        }
        assert_eq!(laptop.tree(), desktop.tree());
    }
}

#[cfg(unix)]
#[test]
fn a_commit_during_a_push_is_no_rewritten_history() {
    let fleet = Fleet::new();
    let (laptop, desktop) = (fleet.machine("laptop"), fleet.machine("desktop"));
    laptop.write("first");
    laptop.sync();
    desktop.sync();
    // The remote has accepted the branch, but the laptop's push has not returned.
    let own = laptop.home.tree(Scope::Portable);
    let own = own.join(".git").display().to_string();
    let script = format!(
        "unset GIT_QUARANTINE_PATH\nexport GIT_DIR='{own}'\n\
         git -c user.name=a -c user.email=b update-ref refs/heads/main \\\n\
         $(git -c user.name=a -c user.email=b commit-tree -p main -m later main^{{tree}})\n"
    );
    after_push(&fleet.path(""), &script);
    laptop.write("second");
    laptop.sync();
    assert_eq!(laptop.git(&["log", "-1", "--format=%s"]), "later\n");
    std::fs::remove_file(fleet.path("bin/git")).unwrap();
    let third = desktop.write("third");
    desktop.sync();
    let synced = laptop.sync();
    assert_eq!(synced.held, None);
    assert_eq!(laptop.title(third.id).as_deref(), Some("third"));
}

#[cfg(unix)]
#[test]
fn an_incomplete_repository_is_removed() {
    let fleet = Fleet::new();
    let laptop = fleet.machine("laptop");
    let half_made = laptop.home.tree(Scope::Portable);
    let half_made = half_made.join(".git.01ARZ3NDEKTSV4RRFFQ69G5FAV.tmp");
    std::fs::create_dir_all(half_made.join("refs")).unwrap();
    laptop.write("first");
    laptop.sync();
    assert!(!half_made.exists());
}
