//! The tools, one file each: parameters, answer and function.

mod amend;
mod connect;
mod feedback;
mod forget;
mod get;
mod list;
mod pathway;
pub(crate) mod reflect;
mod review;
mod search;
mod status;
mod sync;
mod task;
mod timeline;
mod write;

pub(crate) use self::get::whole;

use crate::tool::Tool;

/// All tools, in the order in which clients see them.
pub(crate) fn all() -> Vec<Tool> {
    vec![
        search::tool(),
        get::tool(),
        list::tool(),
        timeline::tool(),
        pathway::tool(),
        review::tool(),
        status::tool(),
        write::tool(),
        amend::tool(),
        connect::tool(),
        forget::tool(),
        task::tool(),
        feedback::tool(),
        reflect::tool(),
        sync::tool(),
    ]
}
