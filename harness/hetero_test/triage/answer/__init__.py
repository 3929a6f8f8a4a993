"""A question comes in; forecasts, recommendations, hazards and inputs go out."""
