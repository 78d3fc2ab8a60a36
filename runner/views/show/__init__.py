"""What is inside a run, for people: debates turn by turn, reports sentence by sentence, as text, JSON or a page.

:func:`runner.views.audience.sees_inside` decides who may see it. What is read here was written by participants or made of
it: every text is bounded and escaped when it is read, so that what renders it cannot forget to.
"""
