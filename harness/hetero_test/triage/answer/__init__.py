"""A question comes in; forecasts, recommendations, hazards and inputs go out.

Of an option's numbers the tok/s and the gain over the baseline are put together here, in
`forecast`; `recommendation` says what they are worth.
"""
