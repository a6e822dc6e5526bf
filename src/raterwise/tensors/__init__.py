"""The torch twin: cases, questions and one pass over predictions that are tensors.

    cases       as `raterwise.predictions`: shapes and values checked, by the same rules
    questions   as `raterwise.questions`: rows become scored cases
    device      as the pass over arrays: cases become summaries, on the device where they are
    pairs       the kernel-density errors over rows

Nothing here is imported unless a tensor is given.
"""
